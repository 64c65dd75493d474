// SPDX-License-Identifier: Apache-2.0
#include "runtime/output_file.hpp"

#include <string_view>

#include <sys/stat.h>

#include "runtime/file.hpp"
#include "tests/support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

BOOST_AUTO_TEST_CASE(small_and_large_pieces_come_out_in_order) {
  const test::temporary_folder folder;
  auto file = output_file::create(folder / "a").value();
  std::string want;
  for (const std::size_t size : {1U, 0U, 3'000'000U, 5U, 1U << 20, 700'000U, 700'000U, 1U}) {
    const std::string piece(size, static_cast<char>('a' + want.size() % 26));
    BOOST_REQUIRE(file.write(bytes_of(piece)));
    want += piece;
  }
  BOOST_TEST(file.size() == want.size());
  BOOST_REQUIRE(file.finish());
  BOOST_TEST((read_file(folder / "a", std::size_t{1} << 30).value() == want));
}

BOOST_AUTO_TEST_CASE(a_file_has_the_permissions_that_the_user_asks_for) {
  const test::temporary_folder folder;
  const auto before = ::umask(0027);
  auto file = output_file::create(folder / "a").value();
  ::umask(before);
  BOOST_REQUIRE(file.finish());
  struct stat info {};
  BOOST_REQUIRE(::stat((folder / "a").c_str(), &info) == 0);
  BOOST_TEST((info.st_mode & 0777U) == 0640U);
}

BOOST_AUTO_TEST_CASE(two_writers_of_one_name_do_not_mix) {
  const test::temporary_folder folder;
  auto one = output_file::create(folder / "a").value();
  auto other = output_file::create(folder / "a").value();
  BOOST_REQUIRE(one.write(bytes_of("one")));
  BOOST_REQUIRE(other.write(bytes_of("other")));
  BOOST_REQUIRE(one.finish());
  BOOST_REQUIRE(other.finish());
  BOOST_TEST(read_file(folder / "a", 100).value() == "other");
}

BOOST_AUTO_TEST_CASE(assigning_over_an_unfinished_file_removes_it) {
  const test::temporary_folder folder;
  auto file = output_file::create(folder / "a").value();
  file = output_file::create(folder / "b").value();
  BOOST_REQUIRE(file.write(bytes_of("b")));
  BOOST_REQUIRE(file.finish());
  BOOST_TEST(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

} // namespace
} // namespace millrace
