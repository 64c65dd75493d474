// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <fstream>

#include "runtime/file.hpp"
#include "schema/inspect.hpp"
#include "schema/recording.hpp"
#include "tests/support/full_disk.hpp"
#include "tests/support/quiet_log.hpp"
#include "tests/unit/actors/assembler/journal_fixture.hpp"

namespace millrace::test {
namespace {

using texts = std::vector<std::string>;

/// Without a sync: there are thousands. A new file: some file systems write one that is cut to
/// nothing and filled again to the disk at once.
bool put_file(const std::filesystem::path &path, const std::string &bytes) {
  std::filesystem::remove(path);
  return (std::ofstream(path, std::ios::binary) << bytes).flush().good();
}
std::string bytes_in(const std::filesystem::path &path) { return read_file(path, 1 << 24).value(); }

struct journal_fixture {
  temporary_folder folder;
  journal_options how = journal_in(folder / "j");
  std::filesystem::path first = folder / "j" / "segment-000001.mrec";
  std::filesystem::path second = folder / "j" / "segment-000002.mrec";

  void append(journal &to, const std::vector<arrival> &all) {
    for (const auto &one : all)
      BOOST_REQUIRE(to.append(one));
  }
  error refusal() {
    auto opened = journal::open(how);
    BOOST_REQUIRE_MESSAGE(!opened, "it was opened");
    return opened.error();
  }
  static bool mentions(const error &why, std::string_view what) {
    return why.message.find(what) != std::string::npos;
  }
};

/// The file of a small journal, and what is in it.
struct sample : journal_fixture {
  texts messages;
  std::vector<std::uint64_t> ends; ///< of the file, after each message
  std::string bytes;

  sample() {
    auto out = begun_journal(how);
    for (const auto &one : arrivals_of(4)) {
      append(*out, {one});
      messages.push_back(text_of(one));
      ends.push_back(out->bytes());
    }
    out.reset();
    bytes = bytes_in(first);
  }
  texts before(std::size_t count) const {
    return {messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(count)};
  }
};

BOOST_FIXTURE_TEST_SUITE(journal_suite, journal_fixture)

BOOST_AUTO_TEST_CASE(it_gives_what_was_appended_over_several_starts) {
  std::vector<arrival> all;
  for (std::uint64_t start = 0; start < 3; ++start) {
    auto subject = begun_journal(how);
    BOOST_TEST(contents_of(*subject) == texts_of(all), boost::test_tools::per_element());
    append(*subject, arrivals_of(start));
    const auto more = arrivals_of(start);
    all.insert(all.end(), more.begin(), more.end());
    BOOST_TEST(contents_of(*subject) == texts_of(all), boost::test_tools::per_element());
    BOOST_REQUIRE(subject->sync());
  }
}

BOOST_AUTO_TEST_CASE(it_knows_each_message_by_its_name) {
  auto subject = begun_journal(how);
  append(*subject, arrivals_of(0));
  const safe_message half{{0, 0}, 0, 0, 0};
  for (int start = 0; start < 2; ++start) {
    BOOST_TEST(subject->has(half));
    BOOST_TEST(subject->has(safe_message{{0, 0}, 1, 3}));
    BOOST_TEST(subject->has(safe_message{{0, 0}, 2, 0}));
    BOOST_TEST(!subject->has(safe_message{{0, 0}, 0, 0, 2}));
    BOOST_TEST(!subject->has(safe_message{{0, 0}, 1, 2}));
    BOOST_TEST(!subject->has(safe_message{{1, 0}, 0, 0, 0}));
    subject.reset();
    subject = begun_journal(how);
  }
}

BOOST_AUTO_TEST_CASE(a_full_segment_is_followed_by_another_and_goes_when_its_groups_are_done) {
  how.segment_bytes = 3000;
  auto subject = begun_journal(how);
  texts all;
  for (std::uint64_t ordinal = 0; ordinal < 4; ++ordinal) {
    append(*subject, arrivals_of(ordinal));
    const auto more = texts_of(arrivals_of(ordinal));
    all.insert(all.end(), more.begin(), more.end());
  }
  BOOST_TEST(std::filesystem::exists(second));
  subject.reset();
  subject = begun_journal(how);
  BOOST_TEST(contents_of(*subject) == all, boost::test_tools::per_element());
  subject->forget({0, 0});
  BOOST_TEST(!subject->has(group_ref{0, 0}));
  for (std::uint64_t ordinal = 1; ordinal < 4; ++ordinal)
    subject->forget({ordinal, 0});
  BOOST_TEST(!std::filesystem::exists(first));
  BOOST_TEST(!std::filesystem::exists(second));
  BOOST_TEST(subject->bytes() == 0U);
  append(*subject, arrivals_of(9));
  subject.reset();
  BOOST_TEST(contents_of(*begun_journal(how)) == texts_of(arrivals_of(9)),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_group_that_goes_on_in_a_later_segment_is_whole_there) {
  how.segment_bytes = 1; // each message has a segment of its own
  auto subject = begun_journal(how);
  append(*subject, arrivals_of(3));
  subject.reset();
  subject = begun_journal(how);
  BOOST_TEST(contents_of(*subject) == texts_of(arrivals_of(3)), boost::test_tools::per_element());
  subject->forget({3, 0});
  BOOST_TEST(subject->size() == 0U);
  BOOST_TEST(subject->bytes() == 0U);
}

BOOST_AUTO_TEST_CASE(what_was_read_stays_when_the_segment_goes) {
  auto subject = begun_journal(how);
  append(*subject, arrivals_of(0));
  const auto kept = subject->read({0, 0}).value();
  subject->forget({0, 0});
  BOOST_TEST(!std::filesystem::exists(first));
  BOOST_TEST(texts_of(kept) == texts_of(arrivals_of(0)), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_folder_that_is_open_is_refused_to_a_second) {
  const auto subject = begun_journal(how);
  BOOST_TEST((refusal().code == errc::conflict), refusal().message);
}

BOOST_AUTO_TEST_CASE(a_journal_of_another_run_assembler_or_planner_is_refused_by_name) {
  BOOST_REQUIRE(begun_journal(how)->append(arrivals_of(0)[0]));
  auto other = journal::open(how);
  const auto begun = (*other)->begin(some_folder(8));
  BOOST_REQUIRE(!begun);
  BOOST_TEST((begun.error().code == errc::conflict));
  BOOST_TEST(mentions(begun.error(), some_folder(7).hex()), begun.error().message);
  other->reset();
  how.run = "run-2";
  BOOST_TEST(mentions(refusal(), "assembler-0 in run 'run-1'"), refusal().message);
}

BOOST_AUTO_TEST_CASE(a_segment_is_a_recording_that_tools_read) {
  auto subject = begun_journal(how);
  append(*subject, arrivals_of(0));
  subject.reset();
  const auto summary = inspect_recording(first).value();
  BOOST_TEST(!summary.damaged());
  BOOST_TEST(summary.source == "assembler-0");
  BOOST_TEST(summary.counts.episodes == 2U);
  BOOST_TEST(summary.records[static_cast<std::size_t>(record_kind::arrival)] == 5U);
  BOOST_TEST(summary.records[static_cast<std::size_t>(record_kind::journal_open)] == 1U);
}

BOOST_AUTO_TEST_CASE(one_cut_anywhere_has_the_whole_messages_before_the_cut_and_goes_on) {
  const quiet_log quiet;
  const sample from;
  std::filesystem::create_directory(folder / "j");
  for (std::uint64_t size = 0; size <= from.bytes.size(); ++size) {
    BOOST_TEST_CONTEXT("cut at " << size) {
      const auto whole = static_cast<std::size_t>(
          std::ranges::count_if(from.ends, [size](auto end) { return end <= size; }));
      BOOST_REQUIRE(put_file(first, from.bytes.substr(0, size)));
      auto subject = begun_journal(how);
      BOOST_REQUIRE((contents_of(*subject) == from.before(whole)));
      append(*subject, {arrivals_of(4)[3]});
      subject.reset();
      auto want = from.before(whole);
      want.push_back(text_of(arrivals_of(4)[3]));
      BOOST_REQUIRE((contents_of(*begun_journal(how)) == want));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_in_any_byte_gives_no_message_that_was_not_written) {
  const quiet_log quiet;
  const sample from;
  std::filesystem::create_directory(folder / "j");
  auto bytes = from.bytes;
  for (std::size_t at = 0; at < bytes.size(); ++at)
    for (const unsigned bit : {0U, 7U}) {
      bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ (1U << bit));
      BOOST_REQUIRE(put_file(first, bytes));
      // Only the last record can pass for one that was being written.
      const bool is_last = at >= from.ends[from.ends.size() - 2];
      auto opened = journal::open(how);
      BOOST_REQUIRE_MESSAGE(opened.has_value() == is_last, "byte " << at << ", bit " << bit);
      if (opened)
        BOOST_REQUIRE((contents_of(**opened) == from.before(from.messages.size() - 1)));
      else
        BOOST_REQUIRE((bytes_in(first) == bytes));
      bytes[at] = from.bytes[at];
    }
}

BOOST_AUTO_TEST_CASE(damage_is_refused_with_its_place_and_what_to_do) {
  const sample from;
  auto bytes = from.bytes;
  bytes[from.ends[1] + 40] = static_cast<char>(bytes[from.ends[1] + 40] ^ 4);
  std::filesystem::create_directory(folder / "j");
  BOOST_REQUIRE(put_file(first, bytes));
  const auto why = refusal();
  BOOST_TEST((why.code == errc::damaged));
  BOOST_TEST(mentions(why, first.string()), why.message);
  BOOST_TEST(mentions(why, fmt::format("offset {}: ", from.ends[1])), why.message);
  BOOST_TEST(mentions(why, "Restore it from a copy"), why.message);
}

BOOST_AUTO_TEST_CASE(only_the_last_segment_may_end_within_a_message) {
  const quiet_log quiet;
  how.segment_bytes = 1500;
  append(*begun_journal(how), arrivals_of(0));
  BOOST_REQUIRE(std::filesystem::exists(second));
  const auto bytes = bytes_in(first);
  BOOST_REQUIRE(put_file(first, bytes.substr(0, bytes.size() - 1)));
  BOOST_TEST((refusal().code == errc::damaged), refusal().message);
  BOOST_REQUIRE(put_file(first, ""));
  BOOST_TEST((refusal().code == errc::damaged), refusal().message);
}

BOOST_AUTO_TEST_CASE(one_of_a_newer_version_is_refused_by_name_and_left_as_it_is) {
  sample from;
  recording_format::file_header header;
  std::memcpy(&header, from.bytes.data(), sizeof(header));
  header.version = 2;
  header.crc = crc_of(header);
  std::memcpy(from.bytes.data(), &header, sizeof(header));
  std::filesystem::create_directory(folder / "j");
  BOOST_REQUIRE(put_file(first, from.bytes));
  BOOST_TEST((refusal().code == errc::unsupported));
  BOOST_TEST(mentions(refusal(), "has format version 2"), refusal().message);
  BOOST_TEST((bytes_in(first) == from.bytes));
}

BOOST_AUTO_TEST_CASE(a_record_that_a_later_program_wrote_is_refused) {
  const sample from;
  const message junk{frame::copy_of(std::as_bytes(std::span("some bytes")))};
  const framed_record unknown(last_record_kind + 1, junk);
  auto bytes = from.bytes;
  bytes.append(reinterpret_cast<const char *>(unknown.header().data()), unknown.header().size());
  for (const auto piece : unknown.body())
    bytes.append(reinterpret_cast<const char *>(piece.data()), piece.size());
  std::filesystem::create_directory(folder / "j");
  BOOST_REQUIRE(put_file(first, bytes));
  BOOST_TEST((refusal().code == errc::unsupported), refusal().message);
}

BOOST_AUTO_TEST_CASE(a_message_for_which_there_is_no_room_can_be_appended_when_there_is) {
  auto subject = begun_journal(how);
  texts want;
  for (const auto &one : arrivals_of(0)) {
    const auto before = subject->bytes();
    const auto needed = [&] { // how much it takes, from a journal beside it
      auto other = how;
      other.folder = folder / "other";
      std::filesystem::remove_all(other.folder);
      auto measured = begun_journal(other);
      for (const auto &each : arrivals_of(0)) {
        const auto begun = measured->bytes();
        BOOST_REQUIRE(measured->append(each));
        if (text_of(each) == text_of(one))
          return measured->bytes() - begun;
      }
      return std::uint64_t{0};
    }();
    for (std::uint64_t room = 0; room < needed; ++room) {
      const auto failed = [&] {
        const file_size_limit limit(before + room);
        return subject->append(one);
      }();
      BOOST_REQUIRE(!failed);
      BOOST_REQUIRE_MESSAGE(failed.error().code == errc::no_space, failed.error().message);
      BOOST_REQUIRE((contents_of(*subject) == want));
    }
    BOOST_REQUIRE(subject->append(one));
    want.push_back(text_of(one));
    BOOST_REQUIRE((contents_of(*subject) == want));
  }
  subject.reset();
  BOOST_TEST(contents_of(*begun_journal(how)) == want, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(after_a_failed_sync_nothing_is_appended) {
  how.sync = true;
  auto subject = begun_journal(how);
  append(*subject, {arrivals_of(0)[0]});
  broken_descriptor broken(first);
  BOOST_REQUIRE(broken.holds());
  const auto failed = subject->sync();
  broken.mend();
  BOOST_REQUIRE(!failed);
  const auto later = subject->append(arrivals_of(0)[1]);
  BOOST_REQUIRE(!later);
  BOOST_TEST(later.error().message == failed.error().message);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
