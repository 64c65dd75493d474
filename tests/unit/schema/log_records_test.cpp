// SPDX-License-Identifier: Apache-2.0
#include "schema/log_records.hpp"

#include <cstring>
#include <random>

#include "schema/body.hpp"
#include "schema/limits.hpp"
#include "tests/support/random_log_records.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

using test::log_record_kinds;
using test::log_record_maker;
using test::same;

// A kind that is added needs a place in the maker of random ones too.
static_assert(log_record_kinds == static_cast<std::size_t>(wire::LogMessage::MAX));

/// A copy at an address that is not aligned.
frame shifted(const frame &in) {
  buffer copy(in.size() + 4);
  std::memcpy(copy.data() + 4, in.data(), in.size());
  return std::move(copy).freeze(4, in.size());
}

/// Encoding it fails with this code and this text.
void check_refused(const log_record &what, errc code, const std::string &text) {
  const auto parts = encode(what);
  BOOST_REQUIRE_MESSAGE(!parts, name_of(what) << " was encoded; expected: " << text);
  BOOST_TEST((parts.error().code == code), parts.error().message);
  BOOST_TEST(parts.error().message.find(text) != std::string::npos, parts.error().message);
}

/// The record as it is, without any check.
template <class Create> message raw(Create &&create) {
  flatbuffers::FlatBufferBuilder builder;
  const auto [type, table] = create(builder);
  return {
      finish_body<wire::LogRecord>(builder, wire::CreateLogRecord(builder, type, table.Union()))};
}

void check_not_read(const message &parts, errc code, const std::string &text) {
  const auto found = decode_log_record(parts);
  BOOST_REQUIRE_MESSAGE(!found, "it was read; expected: " << text);
  BOOST_TEST((found.error().code == code), found.error().message);
  BOOST_TEST(found.error().message.find(text) != std::string::npos, found.error().message);
}

BOOST_AUTO_TEST_CASE(records_of_every_kind_come_back_as_they_were) {
  const std::uint64_t seed = std::random_device{}();
  log_record_maker maker(seed);
  for (std::size_t kind = 0; kind < log_record_kinds; ++kind)
    for (int i = 0; i < 200; ++i) {
      const auto what = maker.make(kind);
      const auto parts = encode(what);
      BOOST_REQUIRE_MESSAGE(parts, "seed " << seed << ": " << parts.error().message);
      const auto back = decode_log_record(*parts);
      BOOST_REQUIRE_MESSAGE(back, "seed " << seed << ": " << back.error().message);
      BOOST_REQUIRE_MESSAGE(same(*back, what), "seed " << seed << ": " << name_of(what));
    }
}

BOOST_AUTO_TEST_CASE(a_record_reads_the_same_wherever_its_parts_lie) {
  log_record_maker maker(1);
  const log_record what = maker.commit(5, 3);
  auto parts = encode(what).value();
  for (auto &part : parts)
    part = shifted(part);
  BOOST_TEST(same(decode_log_record(parts).value(), what));
}

BOOST_AUTO_TEST_CASE(a_commit_may_have_more_bins_and_groups_than_a_message_has_parts) {
  log_record_maker maker(2);
  auto small = maker.commit(1, 1);
  small.groups.resize(limits::parts, small.groups.front());
  small.annotations.resize(limits::parts, small.annotations.front());
  const log_record what = std::move(small);
  const auto parts = encode(what).value();
  BOOST_TEST(parts.size() > limits::parts);
  BOOST_TEST(same(decode_log_record(parts).value(), what));
}

BOOST_AUTO_TEST_CASE(a_long_reason_is_cut_and_all_else_is_kept) {
  auto group = log_record_maker(3).group();
  group.why.assign(limits::text_bytes + 100, 'x');
  const auto parts = encode(log_settled{{group}}).value();
  group.why.resize(limits::text_bytes);
  BOOST_TEST(same(decode_log_record(parts).value(), log_settled{{group}}));
}

BOOST_AUTO_TEST_CASE(what_could_not_be_read_again_is_not_written) {
  log_record_maker maker(4);
  auto commit = maker.commit(2, 2);
  auto without = commit;
  without.annotations.pop_back();
  check_refused(without, errc::bad_value, "commit: annotations: 1 for 2 groups");
  auto mixed = commit;
  std::swap(mixed.annotations[0], mixed.annotations[1]);
  check_refused(mixed, errc::bad_value, "commit: annotations: of group");
  auto other = commit;
  other.bins[1].plan = other.bins[0].plan;
  check_refused(other, errc::bad_value, "commit: plan: of step");
  auto unsorted = commit;
  std::swap(unsorted.bins[0], unsorted.bins[1]);
  check_refused(unsorted, errc::bad_value, "commit: bins: rank 0, index 0 is not in order");
  auto empty = commit;
  empty.bins[0].plan = frame();
  check_refused(empty, errc::bad_format, "commit: plan");
  auto group = maker.group();
  group.states = {200};
  check_refused(log_settled{{group}}, errc::bad_value, "settled: group.states: 200 is unknown");
  group = maker.group();
  group.key.env.assign(limits::name_bytes + 1, 'x');
  check_refused(log_settled{{group}}, errc::too_large, "settled: group.key.env");
}

BOOST_AUTO_TEST_CASE(numbers_that_count_from_one_are_not_zero) {
  check_refused(log_open{"", {}, 0, "", "", "", 1}, errc::bad_value, "open: epoch");
  check_refused(log_open{"", {}, 1, "", "", "", 0}, errc::bad_value, "open: ranks");
  check_refused(log_generation{0, 1}, errc::bad_value, "generation: generation");
  check_refused(log_generation{1, 0}, errc::bad_value, "generation: next");
  check_refused(log_commit{}, errc::bad_value, "commit: step");
  check_refused(log_trained{}, errc::bad_value, "trained: step");
  check_refused(log_durable{}, errc::bad_value, "durable: step");
  check_refused(log_rolled_back{0, 2, 1}, errc::bad_value, "rolled_back: first");
  check_refused(log_rolled_back{3, 2, 1}, errc::bad_value, "rolled_back: last");
  check_refused(log_rolled_back{1, 2, 3}, errc::bad_value, "rolled_back: trained");
}

BOOST_AUTO_TEST_CASE(a_kind_that_is_not_known_yet_is_unsupported) {
  const auto parts = raw([](auto &builder) {
    const auto next = static_cast<wire::LogMessage>(log_record_kinds + 1);
    return std::pair(next, wire::CreateLogDurable(builder, 1));
  });
  check_not_read(parts, errc::unsupported, "kind 9; this program knows kinds 1 to 8");
}

BOOST_AUTO_TEST_CASE(what_must_be_there_is_missed_by_name) {
  check_not_read({}, errc::bad_format, "without parts");
  check_not_read(raw([](auto &builder) {
                   return std::pair(wire::LogMessage::NONE, wire::CreateLogDurable(builder, 1));
                 }),
                 errc::bad_format, "without a message");
  check_not_read(raw([](auto &builder) {
                   return std::pair(wire::LogMessage::LogOpen,
                                    wire::CreateLogOpen(builder, 0, nullptr, 1, 0, 0, 0, 1));
                 }),
                 errc::bad_format, "open: folder: it is missing");
  check_not_read(raw([](auto &builder) {
                   const auto group = wire::CreateLogGroup(builder);
                   const auto groups = builder.CreateVector(std::vector{group});
                   return std::pair(wire::LogMessage::LogSettled,
                                    wire::CreateLogSettled(builder, groups));
                 }),
                 errc::bad_format, "settled: group.place: it is missing");
}

BOOST_AUTO_TEST_CASE(a_record_has_exactly_the_parts_that_its_body_says) {
  log_record_maker maker(6);
  for (const std::size_t kind : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U}) {
    auto parts = encode(maker.make(kind)).value();
    parts.push_back(parts.front());
    check_not_read(parts, errc::bad_format, ": parts: ");
    parts.resize(1);
    if (kind == 4)
      check_not_read(parts, errc::bad_format, "scored: parts: 0");
  }
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_is_refused_or_reads_as_a_record_that_can_be_written) {
  const std::uint64_t seed = std::random_device{}();
  BOOST_TEST_MESSAGE("seed " << seed);
  log_record_maker maker(seed);
  for (std::size_t kind = 0; kind < log_record_kinds; ++kind) {
    const auto parts = encode(maker.make(kind)).value();
    for (std::size_t part = 0; part < parts.size(); ++part)
      for (std::size_t bit = 0; bit < parts[part].size() * 8; ++bit) {
        auto broken = parts;
        buffer bytes(parts[part].size());
        std::memcpy(bytes.data(), parts[part].data(), parts[part].size());
        bytes.data()[bit / 8] ^= std::byte{1} << (bit % 8);
        broken[part] = std::move(bytes).freeze();
        if (const auto read = decode_log_record(broken))
          BOOST_REQUIRE_MESSAGE(encode(*read), "seed " << seed << ": " << name_of(*read));
      }
  }
}

} // namespace
} // namespace millrace
