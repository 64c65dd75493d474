// SPDX-License-Identifier: Apache-2.0
#include "runtime/file.hpp"

#include <cstdlib>
#include <iterator>
#include <string>

#include <sys/resource.h>

#include <boost/test/unit_test.hpp>

using namespace millrace;
namespace fs = std::filesystem;

namespace {

/// A folder of its own, gone afterwards.
struct folder {
  fs::path path;
  folder() {
    auto name = (fs::temp_directory_path() / "millrace-file-XXXXXX").string();
    BOOST_REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~folder() { fs::remove_all(path); }
  auto files() const {
    return std::distance(fs::directory_iterator(path), fs::directory_iterator{});
  }
};

/// No file grows over `bytes` while this lives: what a full disk looks like.
struct full_disk {
  rlimit before{};
  explicit full_disk(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before);
    rlimit now = before;
    now.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~full_disk() { setrlimit(RLIMIT_FSIZE, &before); }
};

} // namespace

BOOST_AUTO_TEST_SUITE(files)

BOOST_AUTO_TEST_CASE(a_file_is_replaced_whole) {
  const folder dir;
  BOOST_REQUIRE(write_file_atomically(dir.path / "a", "first"));
  BOOST_REQUIRE(write_file_atomically(dir.path / "a", "second"));
  BOOST_TEST(*read_file(dir.path / "a", 100) == "second");
  BOOST_TEST(dir.files() == 1);
}

BOOST_AUTO_TEST_CASE(a_full_disk_leaves_the_old_file_and_nothing_else) {
  const folder dir;
  BOOST_REQUIRE(write_file_atomically(dir.path / "a", "old"));
  {
    const full_disk limit(1000);
    const auto done = write_file_atomically(dir.path / "a", std::string(100'000, 'x'));
    BOOST_REQUIRE(!done);
    BOOST_TEST(done.error().message.find("File too large") != std::string::npos);
  }
  BOOST_TEST(*read_file(dir.path / "a", 100) == "old");
  BOOST_TEST(dir.files() == 1);
}

BOOST_AUTO_TEST_CASE(a_folder_that_is_not_there_is_an_error) {
  const auto done = write_file_atomically("/nowhere/to/be/found", "x");
  BOOST_REQUIRE(!done);
  BOOST_TEST(done.error().message ==
             "cannot write '/nowhere/to/be/found': No such file or directory");
}

BOOST_AUTO_TEST_CASE(reading_refuses_a_directory_a_missing_file_and_too_much) {
  const folder dir;
  BOOST_TEST((read_file(dir.path, 10).error().code == errc::bad_argument));
  BOOST_TEST((read_file(dir.path / "none", 10).error().code == errc::not_found));
  BOOST_REQUIRE(write_file_atomically(dir.path / "a", "12345678901"));
  BOOST_TEST((read_file(dir.path / "a", 10).error().code == errc::too_large));
  BOOST_TEST(read_file(dir.path / "a", 11).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
