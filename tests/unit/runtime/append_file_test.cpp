// SPDX-License-Identifier: Apache-2.0
#include "runtime/append_file.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

#include "runtime/file.hpp"
#include "tests/support/full_disk.hpp"
#include "tests/support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

using test::broken_descriptor;
using test::file_size_limit;
using test::temporary_folder;

status append(append_file &file, const std::vector<std::string> &texts) {
  std::vector<std::span<const std::byte>> pieces;
  for (const auto &text : texts)
    pieces.push_back(std::as_bytes(std::span(text)));
  return file.append(pieces);
}

append_file opened(const std::filesystem::path &path) {
  return append_file::open(path, {}).value();
}

std::string content(const std::filesystem::path &path) {
  return read_file(path, std::size_t{1} << 30).value();
}

errc refusal(const std::filesystem::path &path) {
  const auto file = append_file::open(path, {});
  BOOST_REQUIRE(!file);
  BOOST_TEST(file.error().message.find(path.string()) != std::string::npos, file.error().message);
  return file.error().code;
}

BOOST_AUTO_TEST_CASE(pieces_of_any_size_and_number_come_out_in_order) {
  const temporary_folder folder;
  std::vector<std::string> texts{"", "a", "", "", std::string(3'000'000, 'b'), "c"};
  for (int i = 0; i < 2000; ++i)
    texts.push_back(std::string(static_cast<std::size_t>(i % 7), static_cast<char>('a' + i % 26)));
  std::string want;
  for (const auto &text : texts)
    want += text;
  {
    auto file = opened(folder / "a");
    BOOST_REQUIRE(append(file, texts));
    BOOST_TEST(file.size() == want.size());
    BOOST_REQUIRE(file.sync());
  }
  auto again = opened(folder / "a");
  BOOST_REQUIRE(append(again, {}));
  BOOST_REQUIRE(append(again, {"end"}));
  BOOST_TEST((content(folder / "a") == want + "end"));
}

BOOST_AUTO_TEST_CASE(what_is_mapped_is_what_was_appended) {
  const temporary_folder folder;
  auto file = opened(folder / "a");
  BOOST_TEST(file.map().value().empty());
  BOOST_REQUIRE(append(file, {"one", "two"}));
  const auto bytes = file.map().value();
  BOOST_TEST(std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size()) == "onetwo");
}

BOOST_AUTO_TEST_CASE(a_file_that_is_open_cannot_be_opened_again) {
  const temporary_folder folder;
  {
    const auto file = opened(folder / "a");
    BOOST_TEST((refusal(folder / "a") == errc::conflict));
  }
  BOOST_TEST(append_file::open(folder / "a", {}).has_value());
}

BOOST_AUTO_TEST_CASE(a_moved_file_keeps_its_lock) {
  const temporary_folder folder;
  auto file = opened(folder / "a");
  const auto moved = std::move(file);
  BOOST_TEST((refusal(folder / "a") == errc::conflict));
}

BOOST_AUTO_TEST_CASE(only_a_regular_file_is_opened) {
  const temporary_folder folder;
  std::filesystem::create_directory(folder / "folder");
  BOOST_REQUIRE(write_file_atomically(folder / "file", "x"));
  std::filesystem::create_symlink(folder / "file", folder / "link");
  BOOST_REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const auto *name : {"folder", "link", "pipe"})
    BOOST_TEST((refusal(folder / name) == errc::bad_argument), name);
  BOOST_TEST((refusal("/dev/full") == errc::bad_argument));
  BOOST_TEST((refusal(folder / "none/a") == errc::not_found));
  BOOST_TEST(content(folder / "file") == "x");
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_leaves_the_file_as_it_was_and_can_be_tried_again) {
  const temporary_folder folder;
  auto file = opened(folder / "a");
  BOOST_REQUIRE(append(file, {"before"}));
  for (std::uint64_t room = 0; room < 8; ++room) {
    const auto failed = [&] {
      const file_size_limit limit(6 + room);
      return append(file, {"1234", "5678"});
    }();
    BOOST_REQUIRE(!failed);
    BOOST_TEST((failed.error().code == errc::no_space), failed.error().message);
    BOOST_TEST(file.size() == 6U);
    BOOST_TEST(content(folder / "a") == "before");
  }
  BOOST_REQUIRE(append(file, {"1234", "5678"}));
  BOOST_TEST(content(folder / "a") == "before12345678");
}

BOOST_AUTO_TEST_CASE(a_cut_file_goes_on_from_there) {
  const temporary_folder folder;
  auto file = opened(folder / "a");
  BOOST_REQUIRE(append(file, {"123456"}));
  BOOST_REQUIRE(file.truncate(2));
  BOOST_REQUIRE(append(file, {"x"}));
  BOOST_TEST(content(folder / "a") == "12x");
}

BOOST_AUTO_TEST_CASE(a_failed_sync_is_final) {
  const temporary_folder folder;
  auto file = opened(folder / "a");
  BOOST_REQUIRE(append(file, {"x"}));
  broken_descriptor broken(folder / "a");
  BOOST_REQUIRE(broken.holds());
  const auto failed = file.sync();
  broken.mend();
  BOOST_REQUIRE(!failed);
  BOOST_TEST((failed.error().code == errc::io), failed.error().message);
  for (const auto &later : {file.sync(), append(file, {"y"}), file.truncate(0)}) {
    BOOST_REQUIRE(!later);
    BOOST_TEST(later.error().message == failed.error().message);
  }
  BOOST_TEST(content(folder / "a") == "x");
}

BOOST_AUTO_TEST_CASE(an_append_that_cannot_be_cut_back_is_final) {
  const temporary_folder folder;
  auto file = opened(folder / "a");
  broken_descriptor broken(folder / "a");
  BOOST_REQUIRE(broken.holds());
  const auto failed = append(file, {"x"});
  broken.mend();
  BOOST_REQUIRE(!failed);
  BOOST_TEST((failed.error().code == errc::io), failed.error().message);
  BOOST_TEST(!append(file, {"y"}));
  BOOST_TEST(!file.sync());
}

BOOST_AUTO_TEST_CASE(without_syncing_a_sync_does_nothing) {
  const temporary_folder folder;
  auto file = append_file::open(folder / "a", {.sync = false}).value();
  broken_descriptor broken(folder / "a");
  BOOST_REQUIRE(broken.holds());
  BOOST_TEST(file.sync().has_value());
}

} // namespace
} // namespace millrace
