// SPDX-License-Identifier: Apache-2.0
#include "runtime/mapping.hpp"

#include <algorithm>
#include <string_view>

#include <sys/stat.h>

#include "runtime/file.hpp"
#include "tests/support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

std::string_view text_in(const frame &bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

BOOST_AUTO_TEST_CASE(a_mapping_shows_the_bytes_of_the_file) {
  const test::temporary_folder folder;
  BOOST_REQUIRE(write_file_atomically(folder / "a", std::string_view("hello")));
  BOOST_TEST(text_in(map_file(folder / "a").value()) == "hello");
}

BOOST_AUTO_TEST_CASE(a_part_keeps_the_mapping_when_file_and_frame_are_gone) {
  const test::temporary_folder folder;
  BOOST_REQUIRE(write_file_atomically(folder / "a", std::string_view("hello")));
  frame part;
  {
    const auto whole = map_file(folder / "a").value();
    part = whole.sub(1, 3);
  }
  std::filesystem::remove(folder / "a");
  BOOST_TEST(text_in(part) == "ell");
}

BOOST_AUTO_TEST_CASE(a_file_that_is_replaced_stays_as_it_was_mapped) {
  const test::temporary_folder folder;
  BOOST_REQUIRE(write_file_atomically(folder / "a", std::string_view("old")));
  const auto old = map_file(folder / "a").value();
  BOOST_REQUIRE(write_file_atomically(folder / "a", std::string_view("new")));
  BOOST_TEST(text_in(old) == "old");
}

BOOST_AUTO_TEST_CASE(an_empty_file_is_an_empty_frame) {
  const test::temporary_folder folder;
  BOOST_REQUIRE(write_file_atomically(folder / "a", std::string_view()));
  BOOST_TEST(map_file(folder / "a").value().empty());
}

BOOST_AUTO_TEST_CASE(what_is_no_regular_file_is_refused_without_waiting) {
  const test::temporary_folder folder;
  BOOST_REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const auto code_of = [](const std::filesystem::path &path) {
    const auto mapped = map_file(path);
    return mapped ? 0 : static_cast<int>(mapped.error().code);
  };
  BOOST_TEST(code_of(folder / "missing") == static_cast<int>(errc::not_found));
  BOOST_TEST(code_of(folder.path()) == static_cast<int>(errc::bad_argument));
  BOOST_TEST(code_of(folder / "pipe") == static_cast<int>(errc::bad_argument));
  BOOST_TEST(code_of("/dev/zero") == static_cast<int>(errc::bad_argument));
}

} // namespace
} // namespace millrace
