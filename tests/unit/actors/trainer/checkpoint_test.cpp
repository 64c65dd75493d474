// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/checkpoint.hpp"

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "runtime/digest.hpp"
#include "runtime/file.hpp"
#include "tests/support/full_disk.hpp"
#include "tests/support/temporary_folder.hpp"

namespace millrace::test {
namespace {

namespace fs = std::filesystem;

struct checkpoint_fixture {
  temporary_folder state;
  std::vector<std::byte> payload = std::vector(1000, std::byte{7});

  checkpoint_owner owner(std::uint32_t rank = 0) const {
    return {.folder = state / "checkpoints",
            .run = "a run",
            .policy = "replay",
            .rank = rank,
            .ranks = 2};
  }
  void save(const checkpoint_owner &whose, std::uint64_t step) const {
    const auto saved = save_checkpoint(whose, step, payload);
    BOOST_REQUIRE_MESSAGE(saved, saved.error().message);
  }
  bool is_there(const checkpoint_owner &whose, std::uint64_t step) const {
    return fs::exists(checkpoint_path(whose, step));
  }
  std::string text_of(const checkpoint_owner &whose, std::uint64_t step) const {
    return read_file(checkpoint_path(whose, step), 1 << 20).value();
  }
  void put(const checkpoint_owner &whose, std::uint64_t step, const std::string &bytes) const {
    BOOST_REQUIRE(write_file_atomically(checkpoint_path(whose, step), bytes));
  }

  /// Why a checkpoint is not read; every reason names the file.
  error refusal(const checkpoint_owner &whose, std::uint64_t step) const {
    const auto got = read_checkpoint(whose, step);
    BOOST_REQUIRE(!got);
    BOOST_TEST(got.error().message.find(checkpoint_path(whose, step).string()) != std::string::npos,
               got.error().message);
    return got.error();
  }
};

BOOST_FIXTURE_TEST_SUITE(checkpoints, checkpoint_fixture)

BOOST_AUTO_TEST_CASE(what_was_saved_is_read_again) {
  save(owner(), 10);
  const auto got = read_checkpoint(owner(), 10);
  BOOST_REQUIRE_MESSAGE(got, got.error().message);
  BOOST_TEST((std::vector(got->bytes().begin(), got->bytes().end()) == payload));
}

BOOST_AUTO_TEST_CASE(a_policy_may_save_nothing) {
  payload.clear();
  save(owner(), 10);
  BOOST_TEST(read_checkpoint(owner(), 10).value().empty());
}

BOOST_AUTO_TEST_CASE(every_rank_has_a_file_of_its_own) {
  save(owner(0), 10);
  payload.assign(5, std::byte{1});
  save(owner(1), 10);
  BOOST_TEST(checkpoint_path(owner(1), 10) ==
             state / "checkpoints" / "step-000010" / "rank-1.ckpt");
  BOOST_TEST(read_checkpoint(owner(0), 10).value().size() == 1000U);
  BOOST_TEST(read_checkpoint(owner(1), 10).value().size() == 5U);
}

// After a restart the same step is made again.
BOOST_AUTO_TEST_CASE(a_checkpoint_of_the_same_step_replaces_the_one_before) {
  save(owner(), 10);
  payload.assign(5, std::byte{1});
  save(owner(), 10);
  BOOST_TEST(read_checkpoint(owner(), 10).value().size() == 5U);
}

BOOST_AUTO_TEST_CASE(without_syncs_it_is_the_same_file) {
  auto fast = owner();
  fast.sync = file_sync::off;
  save(fast, 10);
  BOOST_TEST(read_checkpoint(owner(), 10).has_value());
}

BOOST_AUTO_TEST_CASE(one_that_is_not_there_is_not_found) {
  BOOST_TEST((refusal(owner(), 10).code == errc::not_found));
}

BOOST_AUTO_TEST_CASE(a_checkpoint_of_somebody_else_is_refused_by_name) {
  save(owner(), 10);
  const auto put_at = [&](const checkpoint_owner &whose, std::uint64_t step) {
    fs::create_directories(checkpoint_path(whose, step).parent_path());
    put(whose, step, text_of(owner(), 10));
    const auto why = refusal(whose, step);
    BOOST_TEST((why.code == errc::conflict));
    return why.message.substr(why.message.find("it is of"));
  };
  auto other = owner();
  other.run = "another run";
  BOOST_TEST(put_at(other, 10) == "it is of run a run, not of another run");
  other = owner();
  other.policy = "grpo";
  BOOST_TEST(put_at(other, 10) == "it is of policy replay, not of grpo");
  other = owner();
  other.ranks = 4;
  BOOST_TEST(put_at(other, 10) == "it is of a job of 2 ranks, not of 4");
  other = owner();
  other.planner.bytes.fill(0x2a);
  BOOST_TEST(put_at(other, 10) == fmt::format("it is of the planner with folder {}, not of {}",
                                              digest128{}.hex(), other.planner.hex()));
  BOOST_TEST(put_at(owner(1), 10) == "it is of rank 0, not of 1");
  BOOST_TEST(put_at(owner(), 20) == "it is of step 10, not of 20");
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_anywhere_is_found) {
  payload.resize(20);
  save(owner(), 10);
  const auto whole = text_of(owner(), 10);
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    auto bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    put(owner(), 10, bytes);
    const auto code = refusal(owner(), 10).code;
    BOOST_TEST((code == errc::damaged || code == errc::unsupported), "bit " << bit);
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_is_cut_anywhere_is_damaged) {
  payload.resize(20);
  save(owner(), 10);
  const auto whole = text_of(owner(), 10);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    put(owner(), 10, whole.substr(0, size));
    BOOST_TEST((refusal(owner(), 10).code == errc::damaged), "size " << size);
  }
}

// Its checksum fits: somebody wrote it so.
BOOST_AUTO_TEST_CASE(lengths_that_do_not_add_up_are_damage) {
  save(owner(), 10);
  for (const std::size_t at : {20U, 24U, 40U}) { // of the run, of the policy, of the state
    auto bytes = text_of(owner(), 10);
    bytes.resize(bytes.size() - 16);
    bytes[at + 3] = '\x7f';
    digest_writer digest;
    digest.add(std::as_bytes(std::span(bytes)));
    const auto sum = digest.finish();
    bytes.append(reinterpret_cast<const char *>(sum.bytes.data()), sum.bytes.size());
    put(owner(1), 10, bytes);
    const auto why = refusal(owner(1), 10);
    BOOST_TEST((why.code == errc::damaged));
    BOOST_TEST(why.message.find("lengths") != std::string::npos, why.message);
  }
}

BOOST_AUTO_TEST_CASE(a_later_version_of_the_format_is_refused_as_such) {
  save(owner(), 10);
  auto bytes = text_of(owner(), 10);
  bytes[8] = 3;
  put(owner(), 10, bytes);
  const auto why = refusal(owner(), 10);
  BOOST_TEST((why.code == errc::unsupported));
  BOOST_TEST(why.message.ends_with("its format is version 3; this program reads 2"), why.message);
}

BOOST_AUTO_TEST_CASE(a_full_disk_leaves_the_checkpoint_that_was_there) {
  save(owner(), 10);
  const auto before = text_of(owner(), 10);
  for (const rlim_t most : {0U, 10U, 48U, 60U, 1'000U}) {
    const file_size_limit limit(most);
    payload.assign(2'000, std::byte{1});
    const auto saved = save_checkpoint(owner(), 10, payload);
    BOOST_REQUIRE(!saved);
    BOOST_TEST((saved.error().code == errc::no_space));
  }
  BOOST_TEST((text_of(owner(), 10) == before));
  BOOST_TEST(
      std::distance(fs::directory_iterator(checkpoint_path(owner(), 10).parent_path()), {}) == 1);
}

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_be_made_is_an_error) {
  std::ofstream(state / "checkpoints") << "x";
  const auto saved = save_checkpoint(owner(), 10, payload);
  BOOST_REQUIRE(!saved);
  BOOST_TEST((saved.error().code == errc::io));
}

BOOST_AUTO_TEST_CASE(older_checkpoints_of_the_owner_go_and_nothing_else) {
  for (const std::uint64_t step : {5U, 10U, 15U, 20U})
    for (const std::uint32_t rank : {0U, 1U})
      save(owner(rank), step);
  BOOST_REQUIRE(remove_checkpoints_below(owner(0), 15));
  for (const std::uint64_t step : {5U, 10U, 15U, 20U}) {
    BOOST_TEST(is_there(owner(0), step) == (step >= 15), step);
    BOOST_TEST(is_there(owner(1), step), step);
  }
}

BOOST_AUTO_TEST_CASE(the_last_rank_removes_the_folder) {
  save(owner(0), 5);
  save(owner(1), 5);
  save(owner(0), 10);
  const auto folder = checkpoint_path(owner(), 5).parent_path();
  BOOST_REQUIRE(remove_checkpoints_below(owner(0), 10));
  BOOST_TEST(fs::exists(folder));
  BOOST_REQUIRE(remove_checkpoints_below(owner(1), 10));
  BOOST_TEST(!fs::exists(folder));
  BOOST_TEST(is_there(owner(0), 10));
}

BOOST_AUTO_TEST_CASE(what_an_interrupted_save_has_left_goes_too) {
  save(owner(1), 5);
  const auto folder = checkpoint_path(owner(), 5).parent_path();
  std::ofstream(folder / "rank-0.ckpt.partial-77-0") << "half";
  std::ofstream(folder / "rank-10.ckpt.partial-77-0") << "of another rank";
  std::ofstream(folder / "notes") << "of a person";
  BOOST_REQUIRE(remove_checkpoints_below(owner(0), 10));
  BOOST_TEST(!fs::exists(folder / "rank-0.ckpt.partial-77-0"));
  BOOST_TEST(fs::exists(folder / "rank-10.ckpt.partial-77-0"));
  BOOST_TEST(fs::exists(folder / "notes"));
}

BOOST_AUTO_TEST_CASE(the_folder_of_a_checkpoint_goes_with_it) {
  for (const std::uint64_t step : {2U, 4U}) {
    save(owner(), step);
    fs::create_directories(checkpoint_folder(owner(), step) / "deeper");
    std::ofstream(checkpoint_folder(owner(), step) / "deeper/parameters") << "many";
  }
  fs::create_directories(checkpoint_folder(owner(1), 2));
  BOOST_REQUIRE(remove_checkpoints_below(owner(), 4));
  BOOST_TEST(!fs::exists(checkpoint_folder(owner(), 2)));
  BOOST_TEST(fs::exists(checkpoint_folder(owner(1), 2)));
  BOOST_TEST(fs::exists(checkpoint_folder(owner(), 4) / "deeper/parameters"));
}

BOOST_AUTO_TEST_CASE(with_no_checkpoints_there_is_nothing_to_remove) {
  BOOST_TEST(remove_checkpoints_below(owner(), 10).has_value());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
