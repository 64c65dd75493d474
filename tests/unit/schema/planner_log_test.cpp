// SPDX-License-Identifier: Apache-2.0
#include "schema/planner_log.hpp"

#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "runtime/crc32c.hpp"
#include "runtime/file.hpp"
#include "schema/recording_writer.hpp"
#include "tests/support/full_disk.hpp"
#include "tests/support/quiet_log.hpp"
#include "tests/support/random_log_records.hpp"
#include "tests/support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

namespace format = recording_format;
using test::log_record_kinds;
using test::log_record_maker;
using test::temporary_folder;

constexpr planner_log::options unsynced{.sync = false};

/// Keeps what a log gives.
struct collector {
  std::vector<log_record> records;
  std::vector<std::uint64_t> offsets;

  log_visitor visitor() {
    return [this](std::uint64_t offset, log_record what) -> status {
      offsets.push_back(offset);
      records.push_back(std::move(what));
      return {};
    };
  }
};

log_visitor ignore() {
  return [](std::uint64_t, const log_record &) -> status { return {}; };
}

bool same(const std::vector<log_record> &a, const std::vector<log_record> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto &one, const auto &other) { return test::same(one, other); });
}

/// True if `a` is how `b` begins.
bool begins(const std::vector<log_record> &a, const std::vector<log_record> &b) {
  return a.size() <= b.size() && same(a, {b.begin(), b.begin() + static_cast<long>(a.size())});
}

/// A log in memory, one record of each kind and one more, and where each ends.
struct sample {
  std::vector<log_record> records;
  std::vector<std::uint64_t> ends{sizeof(format::file_header)};
  std::string bytes;

  explicit sample(std::uint64_t seed) {
    const temporary_folder folder;
    log_record_maker maker(seed);
    auto log = planner_log::open(folder / "log", unsynced, ignore()).value();
    for (std::size_t i = 0; i <= log_record_kinds; ++i) {
      records.push_back(maker.make(i % log_record_kinds));
      BOOST_REQUIRE(log.append(records.back()));
      ends.push_back(log.size());
    }
    bytes = read_file(folder / "log", 1 << 24).value();
  }
  std::vector<log_record> first(std::size_t count) const {
    return {records.begin(), records.begin() + static_cast<long>(count)};
  }
};

result<log_extent> read_bytes(const std::string &bytes, collector &into) {
  return read_planner_log(frame::copy_of(std::as_bytes(std::span(bytes))), "log", into.visitor());
}

/// Without a sync: there are thousands.
bool put_file(const std::filesystem::path &path, const std::string &bytes) {
  return (std::ofstream(path, std::ios::binary) << bytes).flush().good();
}

std::uint64_t random_seed() { return std::random_device{}(); }

BOOST_AUTO_TEST_CASE(a_log_gives_what_was_appended_over_several_starts) {
  const temporary_folder folder;
  const auto seed = random_seed();
  log_record_maker maker(seed);
  std::vector<log_record> want;
  for (int start = 0; start < 4; ++start) {
    collector got;
    auto log = planner_log::open(folder / "log", {}, got.visitor()).value();
    BOOST_TEST(same(got.records, want), "seed " << seed);
    BOOST_TEST(!log.cut_off().has_value());
    for (int i = 0; i < 20; ++i) {
      want.push_back(maker.make());
      BOOST_REQUIRE(log.append(want.back()));
    }
    BOOST_REQUIRE(log.sync());
    BOOST_TEST(log.size() == std::filesystem::file_size(folder / "log"));
  }
  collector got;
  const auto extent = read_planner_log(folder / "log", got.visitor()).value();
  BOOST_TEST(same(got.records, want), "seed " << seed);
  BOOST_TEST(extent.records == want.size());
  BOOST_TEST(extent.bytes == std::filesystem::file_size(folder / "log"));
}

BOOST_AUTO_TEST_CASE(offsets_are_where_the_records_stand) {
  const sample log(random_seed());
  collector got;
  BOOST_REQUIRE(read_bytes(log.bytes, got));
  BOOST_TEST(got.offsets == std::vector(log.ends.begin(), log.ends.end() - 1),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_log_that_is_open_cannot_be_opened_again_but_read) {
  const temporary_folder folder;
  auto log = planner_log::open(folder / "log", unsynced, ignore()).value();
  BOOST_REQUIRE(log.append(log_durable{7}));
  const auto second = planner_log::open(folder / "log", unsynced, ignore());
  BOOST_REQUIRE(!second);
  BOOST_TEST((second.error().code == errc::conflict), second.error().message);
  BOOST_TEST(read_planner_log(folder / "log", ignore()).value().records == 1U);
}

BOOST_AUTO_TEST_CASE(a_log_cut_anywhere_has_the_whole_records_before_the_cut_and_goes_on) {
  const test::quiet_log quiet;
  const temporary_folder folder;
  const auto seed = random_seed();
  const sample log(seed);
  const auto end = log.ends.size() - 1;
  std::size_t whole = end - 3;
  for (auto size = log.ends[end - 3]; size <= log.ends[end]; ++size) {
    if (whole < end && size == log.ends[whole + 1])
      ++whole;
    BOOST_REQUIRE(put_file(folder / "log", log.bytes.substr(0, size)));
    collector got;
    auto opened = planner_log::open(folder / "log", unsynced, got.visitor());
    BOOST_REQUIRE_MESSAGE(opened, "seed " << seed << ", cut at " << size);
    BOOST_REQUIRE_MESSAGE(same(got.records, log.first(whole)),
                          "seed " << seed << ", cut at " << size);
    BOOST_REQUIRE(opened->size() == log.ends[whole]);
    BOOST_REQUIRE(opened->cut_off().has_value() == (size != log.ends[whole]));
    BOOST_REQUIRE(opened->append(log_durable{size}));
    collector again;
    BOOST_REQUIRE(read_planner_log(folder / "log", again.visitor()).value().records == whole + 1);
    BOOST_REQUIRE(test::same(again.records.back(), log_durable{size}));
  }
}

BOOST_AUTO_TEST_CASE(a_log_cut_within_its_header_is_new) {
  const test::quiet_log quiet;
  const temporary_folder folder;
  const sample log(1);
  for (std::size_t size = 0; size < sizeof(format::file_header); ++size) {
    BOOST_REQUIRE(put_file(folder / "log", log.bytes.substr(0, size)));
    const auto extent = read_planner_log(folder / "log", ignore()).value();
    BOOST_REQUIRE(extent.bytes == 0U && extent.torn.has_value() == (size > 0));
    auto opened = planner_log::open(folder / "log", unsynced, ignore());
    BOOST_REQUIRE_MESSAGE(opened, "cut at " << size);
    BOOST_REQUIRE(opened->append(log_durable{1}));
    BOOST_REQUIRE(read_planner_log(folder / "log", ignore()).value().records == 1U);
  }
}

BOOST_AUTO_TEST_CASE(zeros_behind_the_last_record_are_cut_off) {
  const test::quiet_log quiet;
  const temporary_folder folder;
  const sample log(random_seed());
  BOOST_REQUIRE(put_file(folder / "log", log.bytes + std::string(5000, '\0')));
  collector got;
  const auto opened = planner_log::open(folder / "log", unsynced, got.visitor()).value();
  BOOST_TEST(same(got.records, log.records));
  BOOST_TEST(opened.cut_off().value().offset == log.bytes.size());
  BOOST_TEST(opened.cut_off().value().bytes == 5000U);
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_anywhere_gives_no_record_that_was_not_written) {
  const auto seed = random_seed();
  const sample log(seed);
  auto bytes = log.bytes;
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    collector got;
    const auto extent = read_bytes(bytes, got);
    BOOST_REQUIRE_MESSAGE(begins(got.records, log.records), "seed " << seed << ", bit " << bit);
    BOOST_REQUIRE_MESSAGE(!extent || extent->torn, "seed " << seed << ", bit " << bit);
    // Only the last record can pass for one that was being written.
    BOOST_REQUIRE_MESSAGE(extent.has_value() == (bit / 8 >= log.ends[log.ends.size() - 2]),
                          "seed " << seed << ", bit " << bit);
    refused += extent ? 0U : 1U;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
  }
  BOOST_TEST(refused > 0U);
}

BOOST_AUTO_TEST_CASE(a_damaged_log_is_refused_with_its_place_and_stays_as_it_is) {
  const temporary_folder folder;
  const sample log(random_seed());
  for (std::size_t i = 0; i + 2 < log.ends.size(); ++i) {
    auto bytes = log.bytes;
    bytes[log.ends[i] + 40] = static_cast<char>(bytes[log.ends[i] + 40] ^ 4);
    BOOST_REQUIRE(put_file(folder / "log", bytes));
    const auto opened = planner_log::open(folder / "log", unsynced, ignore());
    BOOST_REQUIRE(!opened);
    BOOST_TEST((opened.error().code == errc::damaged), opened.error().message);
    const auto place = "offset " + std::to_string(log.ends[i]) + ":";
    BOOST_TEST(opened.error().message.find(place) != std::string::npos, opened.error().message);
    BOOST_TEST((read_file(folder / "log", 1 << 24).value() == bytes));
  }
}

/// With a header that says this version.
std::string with_version(const std::string &bytes, std::uint32_t version) {
  format::file_header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  header.version = version;
  header.crc = crc_of(header);
  return std::string(reinterpret_cast<const char *>(&header), sizeof(header)) +
         bytes.substr(sizeof(header));
}

void check_refused(const std::string &bytes, errc code, const std::string &text) {
  const temporary_folder folder;
  BOOST_REQUIRE(put_file(folder / "log", bytes));
  const auto opened = planner_log::open(folder / "log", unsynced, ignore());
  BOOST_REQUIRE_MESSAGE(!opened, "it was opened; expected: " << text);
  BOOST_TEST((opened.error().code == code), opened.error().message);
  BOOST_TEST(opened.error().message.find(text) != std::string::npos, opened.error().message);
  BOOST_TEST((read_file(folder / "log", 1 << 24).value() == bytes));
}

BOOST_AUTO_TEST_CASE(a_log_of_a_newer_version_is_refused_by_name) {
  const sample log(1);
  check_refused(with_version(log.bytes, 2), errc::unsupported,
                "has format version 2, flags 0x0; this program knows version 1");
}

/// A record whose checksums fit.
std::string record_of(std::uint32_t kind, const message &parts) {
  const framed_record framed(kind, parts);
  std::string out(reinterpret_cast<const char *>(framed.header().data()), framed.header().size());
  for (const auto piece : framed.body())
    out.append(reinterpret_cast<const char *>(piece.data()), piece.size());
  return out;
}

/// A log of one start of version "7.8.9".
std::string opened_by_789() {
  const temporary_folder folder;
  auto log = planner_log::open(folder / "log", unsynced, ignore()).value();
  BOOST_REQUIRE(log.append(log_open{"run", {}, 1, "7.8.9", "", "", 1}));
  return read_file(folder / "log", 1 << 20).value();
}

BOOST_AUTO_TEST_CASE(a_record_that_a_later_program_wrote_is_refused_with_its_version) {
  flatbuffers::FlatBufferBuilder builder;
  const auto table = wire::CreateLogDurable(builder, 1);
  const auto root = wire::CreateLogRecord(builder, wire::LogMessage(99), table.Union());
  const message unknown{finish_body<wire::LogRecord>(builder, root)};
  const auto text = "last opened by version '7.8.9'";
  check_refused(opened_by_789() + record_of(1, unknown), errc::unsupported, text);
  check_refused(opened_by_789() + record_of(2, encode(log_durable{1}).value()), errc::unsupported,
                text);
}

BOOST_AUTO_TEST_CASE(a_record_that_fits_its_checksum_and_is_none_is_refused_at_the_end_too) {
  const auto log = opened_by_789();
  const message junk{frame::copy_of(std::as_bytes(std::span("junk")))};
  check_refused(log + record_of(1, junk), errc::damaged,
                "offset " + std::to_string(log.size()) + ": log record: ");
}

BOOST_AUTO_TEST_CASE(a_file_of_another_kind_is_refused) {
  const temporary_folder folder;
  BOOST_REQUIRE(recording_writer::create(folder / "r", "source").value().finish());
  check_refused(read_file(folder / "r", 1000).value(), errc::bad_format, "not a planner's log");
  check_refused("plain text", errc::bad_format, "not a planner's log");
  check_refused(std::string("\x89MRLG\r\n\x1a\2", 9), errc::damaged, "cut off after 9 bytes");
  const auto log = opened_by_789();
  BOOST_TEST(!recording_reader::over(frame::copy_of(std::as_bytes(std::span(log))), "log"));
}

BOOST_AUTO_TEST_CASE(what_the_visitor_refuses_is_not_opened) {
  const temporary_folder folder;
  const sample log(1);
  BOOST_REQUIRE(put_file(folder / "log", log.bytes));
  int seen = 0;
  const auto opened = planner_log::open(
      folder / "log", unsynced, [&seen](std::uint64_t, const log_record &) -> status {
        return ++seen < 3 ? status{} : fail(errc::bad_value, "no more");
      });
  BOOST_REQUIRE(!opened);
  BOOST_TEST(opened.error().message == "no more");
  BOOST_TEST(seen == 3);
}

BOOST_AUTO_TEST_CASE(a_record_for_which_there_is_no_room_can_be_appended_when_there_is) {
  const temporary_folder folder;
  const auto seed = random_seed();
  log_record_maker maker(seed);
  auto log = planner_log::open(folder / "log", unsynced, ignore()).value();
  std::vector<log_record> want;
  for (std::size_t kind = 0; kind < log_record_kinds; ++kind) {
    const auto what = maker.make(kind);
    const auto before = read_file(folder / "log", 1 << 24).value();
    const auto bytes = record_of(planner_log_record, encode(what).value()).size();
    for (std::uint64_t room = 0; room < bytes; ++room) {
      const auto failed = [&] {
        const test::file_size_limit limit(before.size() + room);
        return log.append(what);
      }();
      BOOST_REQUIRE(!failed);
      BOOST_REQUIRE_MESSAGE(failed.error().code == errc::no_space, failed.error().message);
      BOOST_REQUIRE(log.size() == before.size());
      BOOST_REQUIRE((read_file(folder / "log", 1 << 24).value() == before));
    }
    BOOST_REQUIRE(log.append(what));
    want.push_back(what);
  }
  collector got;
  BOOST_REQUIRE(read_planner_log(folder / "log", got.visitor()));
  BOOST_TEST(same(got.records, want), "seed " << seed);
}

BOOST_AUTO_TEST_CASE(a_log_for_whose_header_there_is_no_room_is_made_later) {
  const temporary_folder folder;
  for (std::uint64_t room = 0; room < sizeof(format::file_header); ++room) {
    const auto opened = [&] {
      const test::file_size_limit limit(room);
      return planner_log::open(folder / "log", unsynced, ignore());
    }();
    BOOST_REQUIRE(!opened);
    BOOST_TEST((opened.error().code == errc::no_space), opened.error().message);
  }
  BOOST_TEST(planner_log::open(folder / "log", unsynced, ignore()).has_value());
}

BOOST_AUTO_TEST_CASE(after_a_failed_sync_nothing_is_appended) {
  const temporary_folder folder;
  auto log = planner_log::open(folder / "log", {}, ignore()).value();
  BOOST_REQUIRE(log.append(log_durable{1}));
  test::broken_descriptor broken(folder / "log");
  BOOST_REQUIRE(broken.holds());
  const auto failed = log.sync();
  broken.mend();
  BOOST_REQUIRE(!failed);
  const auto later = log.append(log_durable{2});
  BOOST_REQUIRE(!later);
  BOOST_TEST(later.error().message == failed.error().message);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_encoded_leaves_the_log_as_it_was) {
  const temporary_folder folder;
  auto log = planner_log::open(folder / "log", unsynced, ignore()).value();
  const auto size = log.size();
  BOOST_TEST(!log.append(log_durable{0}));
  BOOST_TEST(log.size() == size);
  BOOST_TEST(log.append(log_durable{1}).has_value());
}

} // namespace
} // namespace millrace
