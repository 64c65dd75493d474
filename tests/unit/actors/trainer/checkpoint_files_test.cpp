// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/checkpoint_files.hpp"

#include <fstream>
#include <string>

#include <boost/test/unit_test.hpp>

#include "tests/support/temporary_folder.hpp"

namespace millrace::test {
namespace {

namespace fs = std::filesystem;

struct files_fixture {
  temporary_folder state;
  fs::path folder = state / "rank-0";
  std::vector<std::byte> seal;

  files_fixture() {
    BOOST_REQUIRE(make_empty_folder(folder));
    fs::create_directory(folder / "shards");
    write("weights", "some weights");
    write("shards/0", "a shard");
    write("empty", "");
    seal = seal_folder(folder, file_sync::on).value();
  }
  void write(const std::string &name, std::string_view text) const {
    std::ofstream(folder / name) << text;
  }
  std::string damage() const {
    const auto checked = check_folder(folder, seal);
    BOOST_TEST_REQUIRE(!checked.has_value());
    BOOST_TEST((checked.error().code == errc::damaged));
    return checked.error().message;
  }
};

BOOST_FIXTURE_TEST_SUITE(files_of_a_checkpoint, files_fixture)

BOOST_AUTO_TEST_CASE(files_that_are_as_they_were_sealed_are_fine) {
  BOOST_TEST(check_folder(folder, seal).has_value());
  BOOST_TEST((seal_folder(folder, file_sync::off).value() == seal));
}

BOOST_AUTO_TEST_CASE(a_file_that_is_gone_changed_or_of_another_size_is_named) {
  write("weights", "Some weights");
  BOOST_TEST(damage().find("weights") != std::string::npos);
  write("weights", "some weights");
  write("shards/0", "a shard more");
  BOOST_TEST(damage().find("shards/0") != std::string::npos);
  fs::remove(folder / "shards/0");
  BOOST_TEST(damage().find("shards/0") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_is_no_seal_is_refused) {
  for (const std::string_view text :
       {"", "{}", R"({"version":2,"files":[]})", R"({"version":1,"files":[{"name":"weights"}]})"})
    BOOST_TEST(!check_folder(folder, std::as_bytes(std::span(text))).has_value(), text);
}

BOOST_AUTO_TEST_CASE(a_folder_is_made_empty_whatever_was_in_it) {
  BOOST_REQUIRE(make_empty_folder(folder));
  BOOST_TEST(fs::is_empty(folder));
}

BOOST_AUTO_TEST_CASE(what_is_neither_file_nor_folder_is_not_sealed) {
  fs::create_symlink("/etc/passwd", folder / "link");
  BOOST_TEST((seal_folder(folder, file_sync::on).error().code == errc::bad_value));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
