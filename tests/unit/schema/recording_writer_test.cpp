// SPDX-License-Identifier: Apache-2.0
#include "schema/recording_writer.hpp"

#include <utility>

#include <sys/resource.h>

#include "runtime/file.hpp"
#include "tests/support/episodes.hpp"
#include "tests/support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

/// No file of this process may pass `bytes` while it lives.
class file_size_limit {
public:
  explicit file_size_limit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  file_size_limit(const file_size_limit &) = delete;
  file_size_limit &operator=(const file_size_limit &) = delete;
  ~file_size_limit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

private:
  rlimit before_{};
};

std::size_t files_in(const std::filesystem::path &folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

BOOST_AUTO_TEST_CASE(the_file_appears_when_it_is_finished) {
  const test::temporary_folder folder;
  auto writer = recording_writer::create(folder / "a.mrec", "tests").value();
  BOOST_REQUIRE(writer.append(test::sealed({test::some_episode()})));
  BOOST_TEST(!std::filesystem::exists(folder / "a.mrec"));
  BOOST_REQUIRE(writer.finish());
  BOOST_TEST(std::filesystem::file_size(folder / "a.mrec") == writer.bytes());
  BOOST_TEST(files_in(folder.path()) == 1U);
}

BOOST_AUTO_TEST_CASE(a_writer_that_does_not_finish_leaves_nothing) {
  const test::temporary_folder folder;
  {
    auto writer = recording_writer::create(folder / "a.mrec", "tests").value();
    BOOST_REQUIRE(writer.append(test::sealed({test::some_episode()})));
    const auto moved = std::move(writer);
    BOOST_TEST(files_in(folder.path()) == 1U);
  }
  BOOST_TEST(files_in(folder.path()) == 0U);
}

BOOST_AUTO_TEST_CASE(an_older_file_stays_until_the_new_one_is_whole) {
  const test::temporary_folder folder;
  BOOST_REQUIRE(write_file_atomically(folder / "a.mrec", std::string_view("old")));
  { auto writer = recording_writer::create(folder / "a.mrec", "tests").value(); }
  BOOST_TEST(read_file(folder / "a.mrec", 100).value() == "old");
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_an_error_that_names_the_file_and_leaves_nothing) {
  const test::temporary_folder folder;
  {
    auto writer = recording_writer::create(folder / "a.mrec", "tests").value();
    auto large = test::some_episode();
    large.nodes[1] = test::some_node(1, "assistant", 100'000);
    count_whole_episode(large);
    const auto parts = encode(large).value();
    const file_size_limit limit(1 << 20);
    status wrote;
    for (int i = 0; wrote && i < 10; ++i)
      wrote = writer.append(record_kind::frame, parts);
    BOOST_REQUIRE(!wrote);
    BOOST_TEST(static_cast<int>(wrote.error().code) == static_cast<int>(errc::no_space));
    BOOST_TEST(wrote.error().message.find((folder / "a.mrec").string()) != std::string::npos);
    BOOST_TEST(!writer.append(record_kind::frame, parts));
    BOOST_TEST(!writer.finish());
  }
  BOOST_TEST(files_in(folder.path()) == 0U);
}

BOOST_AUTO_TEST_CASE(a_disk_that_fills_up_at_the_end_is_noticed_by_finish) {
  const test::temporary_folder folder;
  {
    auto writer = recording_writer::create(folder / "a.mrec", "tests").value();
    BOOST_REQUIRE(writer.append(test::sealed({test::some_episode()})));
    const file_size_limit limit(100);
    BOOST_TEST(!writer.finish());
  }
  BOOST_TEST(files_in(folder.path()) == 0U);
}

BOOST_AUTO_TEST_CASE(places_that_cannot_hold_a_file_are_refused_at_once) {
  const test::temporary_folder folder;
  BOOST_TEST(!recording_writer::create(folder.path(), "tests"));
  BOOST_TEST(!recording_writer::create(folder / "no/such/folder.mrec", "tests"));
  BOOST_TEST(!recording_writer::create("/dev/null", "tests"));
  BOOST_TEST(!recording_writer::create("", "tests"));
}

BOOST_AUTO_TEST_CASE(what_is_no_such_record_is_refused_and_not_written) {
  const test::temporary_folder folder;
  auto writer = recording_writer::create(folder / "a.mrec", "tests").value();
  const auto before = writer.bytes();
  const auto frame = encode(test::some_episode()).value();
  BOOST_TEST(!writer.append(record_kind::sealed_episode, frame));
  BOOST_TEST(!writer.append(record_kind::text, frame));
  BOOST_TEST(!writer.append(record_kind::group_size, frame));
  BOOST_TEST(!writer.append(record_kind::index, frame));
  BOOST_TEST(!writer.append(record_kind::frame, {}));
  BOOST_TEST(writer.bytes() == before);
  BOOST_TEST(writer.counts().episodes == 0U);
}

BOOST_AUTO_TEST_CASE(a_long_source_name_is_cut_at_a_character) {
  const test::temporary_folder folder;
  // 39 bytes, then a character of two bytes that does not fit whole.
  auto writer =
      recording_writer::create(folder / "a.mrec", std::string(39, 'a') + "\xc3\xa9" + "b").value();
  BOOST_REQUIRE(writer.finish());
  BOOST_TEST(recording_reader::open(folder / "a.mrec").value().source() == std::string(39, 'a'));
}

} // namespace
} // namespace millrace
