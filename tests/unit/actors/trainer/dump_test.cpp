// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "actors/packer/gather.hpp"
#include "actors/trainer/dump.hpp"
#include "actors/trainer/micro_batch_digest.hpp"
#include "tests/support/random_bins.hpp"

using namespace millrace;
using namespace millrace::test;

namespace {

/// A folder of its own, gone afterwards.
struct temporary_folder {
  std::filesystem::path path;
  temporary_folder() {
    auto name = (std::filesystem::temp_directory_path() / "millrace-dump-XXXXXX").string();
    BOOST_TEST_REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

std::string output_of(const std::string &command) {
  std::string out;
  auto *pipe = popen(command.c_str(), "r");
  BOOST_TEST_REQUIRE(pipe != nullptr);
  char text[256];
  while (fgets(text, sizeof text, pipe) != nullptr)
    out += text;
  BOOST_TEST(pclose(pipe) == 0);
  return out;
}

} // namespace

BOOST_AUTO_TEST_SUITE(tensor_dumps)

BOOST_AUTO_TEST_CASE(a_script_recomputes_the_grid_hash_from_the_dumps) {
  const std::uint64_t seed = std::random_device{}();
  BOOST_TEST_CONTEXT("seed " << seed) {
    const temporary_folder folder;
    grid_hash grid;
    micro_batch_tensors tensors;
    for (std::uint64_t step = 1; step <= 12; ++step) {
      std::vector<micro_batch_digest> digests;
      for (std::uint32_t i = 0; i < 4; ++i) {
        made_bin made;
        bin_maker(seed + step * 100 + i).fill(made);
        made.plan.step = step;
        made.plan.rank = i / 2;
        made.plan.index = i % 2;
        widen(*micro_batch::parse(*gather(made.plan)), tensors);
        digests.push_back(digest_of(tensors));
        const auto written = dump(folder.path, tensors);
        BOOST_TEST_REQUIRE(written.has_value(), (written ? "" : written.error().message));
      }
      grid.add_step(step, digests);
    }
    BOOST_TEST(output_of("/usr/bin/python3 " MILLRACE_SOURCE_DIR "/tests/tools/grid_hash.py " +
                         folder.path.string()) == grid.value().hex() + "\n");
  }
}

BOOST_AUTO_TEST_CASE(a_dump_stands_where_it_says_and_nothing_else_is_left) {
  const temporary_folder folder;
  made_bin made;
  bin_maker(1).fill(made);
  made.plan.step = 7;
  made.plan.rank = 1;
  made.plan.index = 2;
  micro_batch_tensors tensors;
  widen(*micro_batch::parse(*gather(made.plan)), tensors);
  BOOST_TEST_REQUIRE(dump(folder.path, tensors).has_value());
  const auto rank = folder.path / "step-000007" / "rank-1";
  BOOST_TEST(std::filesystem::exists(rank / "mb-002.safetensors"));
  const auto entries = std::distance(std::filesystem::directory_iterator(rank), {});
  BOOST_TEST(entries == 1);
}

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_be_made_is_an_error) {
  const temporary_folder folder;
  std::ofstream(folder.path / "file") << "x";
  micro_batch_tensors tensors;
  const auto got = dump(folder.path / "file", tensors);
  BOOST_TEST_REQUIRE(!got.has_value());
  BOOST_TEST((got.error().code == errc::io));
}

BOOST_AUTO_TEST_SUITE_END()
