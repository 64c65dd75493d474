// SPDX-License-Identifier: Apache-2.0
#include "schema/recording.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "runtime/crc32c.hpp"
#include "runtime/file.hpp"
#include "schema/limits.hpp"
#include "schema/recording_writer.hpp"
#include "tests/support/episodes.hpp"
#include "tests/support/raw_records.hpp"
#include "tests/support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

namespace format = recording_format;
using test::file_header;
using test::lengths;
using test::raw;
using test::raw_record;

/// A recording with every kind of record, as bytes.
std::string small_recording() {
  const test::temporary_folder folder;
  auto writer = recording_writer::create(folder / "a.mrec", "tests").value();
  BOOST_REQUIRE(writer.append_group_size(test::some_key(), 2));
  const auto loose = test::some_episode_in_two("loose");
  auto with_experts = test::some_episode("sealed");
  with_experts.nodes[1].routed_experts = test::some_experts(5);
  BOOST_REQUIRE(writer.append(record_kind::frame, encode(loose[0]).value()));
  BOOST_REQUIRE(writer.append(test::sealed({with_experts})));
  BOOST_REQUIRE(writer.append(test::parsed(loose[1])));
  flatbuffers::FlatBufferBuilder builder;
  const auto text = wire::CreateEpisodeText(builder, create_key(builder, test::some_key()),
                                            builder.CreateString("loose"));
  BOOST_REQUIRE(writer.append(record_kind::text, {finish_body<wire::EpisodeText>(builder, text)}));
  BOOST_REQUIRE(writer.finish());
  return read_file(folder / "a.mrec", 1 << 20).value();
}

frame frame_of(std::string_view bytes) { return frame::copy_of(std::as_bytes(std::span(bytes))); }

recording_reader reader_over(std::string_view bytes) {
  return recording_reader::over(frame_of(bytes), "test").value();
}

std::vector<record> read_all(recording_reader &reader) {
  std::vector<record> out;
  while (auto one = reader.next())
    out.push_back(std::move(*one));
  return out;
}

bool same_parts(const message &a, const message &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const frame &x, const frame &y) {
    return std::ranges::equal(x.bytes(), y.bytes());
  });
}

std::string error_of(const std::filesystem::path &path) {
  const auto reader = recording_reader::open(path);
  BOOST_REQUIRE(!reader);
  return reader.error().message;
}

BOOST_AUTO_TEST_CASE(records_come_back_as_they_were_written) {
  auto reader = reader_over(small_recording());
  const auto records = read_all(reader);
  const std::vector<record_kind> kinds{record_kind::group_size, record_kind::frame,
                                       record_kind::sealed_episode, record_kind::frame,
                                       record_kind::text};
  BOOST_REQUIRE_EQUAL(records.size(), kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i)
    BOOST_TEST(to_string(records[i].kind) == to_string(kinds[i]));
  BOOST_TEST(same_parts(records[1].parts, encode(test::some_episode_in_two("loose")[0]).value()));
  BOOST_TEST(sealed_episode::parse(records[2].parts).value().id() == "sealed");
  BOOST_TEST(reader.finished());
  BOOST_TEST(reader.source() == "tests");
  BOOST_TEST(reader.damage_count() == 0U);
  BOOST_TEST(!reader.torn());
}

BOOST_AUTO_TEST_CASE(parts_lie_in_the_mapping_at_multiples_of_16) {
  const auto bytes = frame_of(small_recording());
  auto reader = recording_reader::over(bytes, "test").value();
  for (const auto &one : read_all(reader))
    for (const auto &part : one.parts) {
      BOOST_TEST(part.data() >= bytes.data());
      BOOST_TEST(part.data() + part.size() <= bytes.data() + bytes.size());
      BOOST_TEST((part.data() - bytes.data()) % 16 == 0);
    }
}

BOOST_AUTO_TEST_CASE(records_keep_the_mapping_alive) {
  const test::temporary_folder folder;
  const auto path = folder / "a.mrec";
  BOOST_REQUIRE(write_file_atomically(path, std::string_view(small_recording())));
  std::vector<record> records;
  {
    auto reader = recording_reader::open(path).value();
    records = read_all(reader);
  }
  std::filesystem::remove(path);
  BOOST_TEST(sealed_episode::parse(records[2].parts).value().tokens() == 8U);
}

BOOST_AUTO_TEST_CASE(the_index_counts_episodes_by_group_and_status) {
  auto reader = reader_over(small_recording());
  read_all(reader);
  BOOST_REQUIRE(reader.index());
  const auto counts = counts_of(**reader.index());
  BOOST_TEST(counts.episodes == 2U);
  BOOST_TEST(counts.nodes == 4U);
  BOOST_TEST(counts.tokens == 16U);
  BOOST_REQUIRE_EQUAL(counts.groups.size(), 1U);
  BOOST_TEST(counts.groups[0].key.text() == test::some_key().text());
  BOOST_TEST(counts.groups[0].size == 2U);
  BOOST_TEST(counts.groups[0].ok == 2U);
}

/// What a damaged file may give: some of the good records, in order, never anything else.
void check_subsequence(const std::vector<record> &got, const std::vector<record> &good,
                       std::size_t place) {
  auto next = good.begin();
  for (const auto &one : got) {
    next = std::find_if(next, good.end(), [&](const record &candidate) {
      return candidate.kind == one.kind && same_parts(candidate.parts, one.parts);
    });
    BOOST_REQUIRE_MESSAGE(next != good.end(), "a wrong record, damage at " << place);
    ++next;
  }
}

BOOST_AUTO_TEST_CASE(every_changed_byte_is_noticed_and_no_wrong_record_comes) {
  const auto bytes = small_recording();
  auto whole = reader_over(bytes);
  const auto good = read_all(whole);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (const unsigned flip : {0x01U, 0x80U, 0xFFU}) {
      auto changed = bytes;
      changed[i] = static_cast<char>(static_cast<unsigned char>(changed[i]) ^ flip);
      auto reader = recording_reader::over(frame_of(changed), "test");
      if (!reader) {
        BOOST_REQUIRE_MESSAGE(i < 8, "refused after a change at " << i);
        continue;
      }
      const auto got = read_all(*reader);
      BOOST_REQUIRE_MESSAGE(reader->damage_count() > 0, "not noticed at " << i);
      check_subsequence(got, good, i);
      BOOST_REQUIRE_MESSAGE(got.size() + 1 >= good.size(), "more than one record lost at " << i);
    }
}

BOOST_AUTO_TEST_CASE(every_truncation_leaves_the_records_before_it) {
  const auto bytes = small_recording();
  auto whole = reader_over(bytes);
  const auto good = read_all(whole);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    auto reader = recording_reader::over(frame_of(std::string_view(bytes).substr(0, size)), "test");
    if (!reader) {
      BOOST_REQUIRE_MESSAGE(size < 64, "refused after " << size << " bytes");
      continue;
    }
    const auto got = read_all(*reader);
    BOOST_REQUIRE(got.size() <= good.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      BOOST_REQUIRE(same_parts(got[i].parts, good[i].parts));
    const bool at_record = std::any_of(good.begin(), good.end(),
                                       [&](const record &one) { return one.offset == size; }) ||
                           size == reader_over(bytes).bytes();
    BOOST_REQUIRE_MESSAGE(!reader->finished(), "finished after " << size << " bytes");
    BOOST_REQUIRE_MESSAGE(reader->damage_count() == 0, "damage after " << size << " bytes");
    if (at_record)
      BOOST_REQUIRE_MESSAGE(!reader->torn(), "torn after " << size << " bytes");
    else if (reader->torn())
      BOOST_REQUIRE(reader->torn()->offset + reader->torn()->bytes == size);
  }
}

BOOST_AUTO_TEST_CASE(a_record_that_runs_past_the_end_is_a_torn_tail) {
  const auto bytes = small_recording();
  auto whole = reader_over(bytes);
  const auto good = read_all(whole);
  const auto cut = good[3].offset + 40;
  auto reader = reader_over(bytes.substr(0, cut));
  BOOST_TEST(read_all(reader).size() == 3U);
  BOOST_REQUIRE(reader.torn());
  BOOST_TEST(reader.torn()->offset == good[3].offset);
  BOOST_TEST(reader.torn()->bytes == 40U);
}

BOOST_AUTO_TEST_CASE(a_record_that_runs_past_the_end_with_records_inside_is_damage) {
  auto inner = raw_record(1, 1, lengths({16}) + std::string(16, 'x'));
  auto outer = raw_record(1, 1, lengths({4096}) + std::string(4096, 'y')).substr(0, 32);
  auto reader = reader_over(file_header() + outer + inner);
  BOOST_TEST(read_all(reader).size() == 1U);
  BOOST_TEST(!reader.torn());
  BOOST_REQUIRE_EQUAL(reader.damage_count(), 1U);
  BOOST_TEST(reader.bytes_skipped() == 32U);
}

BOOST_AUTO_TEST_CASE(bytes_taken_out_of_a_body_cost_one_record) {
  const auto bytes = small_recording();
  auto whole = reader_over(bytes);
  const auto good = read_all(whole);
  for (const std::size_t count : {1U, 5U, 16U, 100U}) {
    auto changed = bytes;
    changed.erase(good[1].offset + 64, count);
    auto reader = reader_over(changed);
    const auto got = read_all(reader);
    BOOST_TEST(got.size() + 1 == good.size());
    check_subsequence(got, good, count);
    BOOST_TEST(reader.damage_count() > 0U);
    BOOST_TEST(reader.finished());
  }
}

BOOST_AUTO_TEST_CASE(damage_says_where_why_and_how_much) {
  const auto bytes = small_recording();
  auto whole = reader_over(bytes);
  const auto good = read_all(whole);
  auto changed = bytes;
  changed[good[2].offset + 50] ^= 1;
  auto reader = reader_over(changed);
  read_all(reader);
  const auto &first = reader.damage().at(0);
  BOOST_TEST(first.offset == good[2].offset);
  BOOST_TEST(first.bytes == good[3].offset - good[2].offset);
  BOOST_TEST(first.reason.find("checksum") != std::string::npos);
  BOOST_TEST(reader.bytes_skipped() == first.bytes);
}

BOOST_AUTO_TEST_CASE(a_whole_record_taken_out_is_noticed_by_the_index) {
  const auto bytes = small_recording();
  auto whole = reader_over(bytes);
  const auto good = read_all(whole);
  auto changed = bytes;
  changed.erase(good[1].offset, good[2].offset - good[1].offset);
  auto reader = reader_over(changed);
  BOOST_TEST(read_all(reader).size() + 1 == good.size());
  BOOST_TEST(reader.damage_count() == 1U);
}

BOOST_AUTO_TEST_CASE(bytes_after_the_closing_index_are_damage) {
  const auto bytes = small_recording();
  auto reader = reader_over(bytes + bytes);
  BOOST_TEST(read_all(reader).size() == 5U);
  BOOST_TEST(reader.damage_count() == 1U);
  BOOST_TEST(reader.bytes_skipped() == bytes.size());
}

BOOST_AUTO_TEST_CASE(records_that_lie_about_their_parts_are_damage) {
  const auto max = ~std::uint64_t{0};
  const std::string filled(48, 'x');
  for (const auto &bad :
       {raw_record(0, 1, lengths({48}) + filled),
        raw_record(last_record_kind + 1, 1, lengths({48}) + filled), raw_record(1, 0, ""),
        raw_record(1, 1, ""), raw_record(1, 1, lengths({32}) + filled),
        raw_record(1, 1, lengths({64}) + filled), raw_record(1, 1, lengths({max}) + filled),
        raw_record(1, 1, lengths({max - 7}) + filled),
        raw_record(1, 2, lengths({16, max - 15}) + filled),
        raw_record(1, 0xFFFF'FFFFU, lengths({48}) + filled),
        raw_record(1, limits::parts + 1, std::string((limits::parts + 1) * 8 + 8, '\0'))}) {
    auto reader = reader_over(file_header() + bad);
    BOOST_TEST(read_all(reader).empty());
    BOOST_TEST(reader.damage_count() == 1U);
    BOOST_TEST(reader.bytes_skipped() == bad.size());
  }
}

BOOST_AUTO_TEST_CASE(a_body_size_near_2_to_the_64_does_not_wrap) {
  format::record_header header;
  header.kind = 1;
  header.parts = 1;
  header.body_bytes = ~std::uint64_t{0} - 90; // offset + header + this would wrap to a small number
  header.crc = crc32c(std::as_bytes(std::span(&header, 1)).first(28));
  auto reader = reader_over(file_header() + raw(header) + std::string(64, 'x'));
  BOOST_TEST(read_all(reader).empty());
  BOOST_TEST(reader.torn().has_value());
}

BOOST_AUTO_TEST_CASE(headers_that_all_claim_the_same_bytes_do_not_multiply_the_work) {
  // 60,000 headers, each claiming the rest of 2 MB with a checksum that does not fit: read for each
  // of them that would be 60 GB.
  constexpr std::size_t headers = 60'000;
  std::string bytes = file_header();
  bytes.reserve(bytes.size() + headers * 32 + 8);
  for (std::size_t i = 0; i < headers; ++i) {
    format::record_header header;
    header.kind = 1;
    header.parts = 1;
    header.body_bytes = (headers - i - 1) * 32;
    header.body_crc = 1;
    header.crc = crc32c(std::as_bytes(std::span(&header, 1)).first(28));
    bytes += raw(header);
  }
  bytes += "12345678"; // so that no header ends where the file does
  auto reader = reader_over(bytes);
  BOOST_TEST(read_all(reader).empty());
  BOOST_TEST(reader.damage_count() < 10U);
  BOOST_TEST(reader.bytes_skipped() == bytes.size() - 64);
}

BOOST_AUTO_TEST_CASE(the_list_of_damage_is_bounded_and_its_count_is_not) {
  std::string bytes = file_header();
  for (int i = 0; i < 3000; ++i)
    bytes += raw_record(9, 1, "");
  auto reader = reader_over(bytes);
  read_all(reader);
  BOOST_TEST(reader.damage().size() == 1000U);
  BOOST_TEST(reader.damage_count() == 3000U);
  BOOST_TEST(reader.bytes_skipped() == bytes.size() - 64);
}

BOOST_AUTO_TEST_CASE(a_damaged_file_header_does_not_hide_the_records) {
  auto bytes = small_recording();
  bytes[20] ^= 1;
  auto reader = reader_over(bytes);
  BOOST_TEST(read_all(reader).size() == 5U);
  BOOST_TEST(reader.damage().at(0).offset == 0U);
}

BOOST_AUTO_TEST_CASE(another_format_version_is_refused_by_number) {
  format::file_header header;
  header.version = 2;
  header.crc = crc32c(std::as_bytes(std::span(&header, 1)).first(60));
  const auto reader = recording_reader::over(frame_of(raw(header)), "test");
  BOOST_REQUIRE(!reader);
  BOOST_TEST(static_cast<int>(reader.error().code) == static_cast<int>(errc::unsupported));
  BOOST_TEST(reader.error().message.find("version 2") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_is_no_recording_is_refused_in_one_line_that_names_it) {
  const test::temporary_folder folder;
  BOOST_REQUIRE(write_file_atomically(folder / "empty", std::string_view()));
  BOOST_REQUIRE(write_file_atomically(folder / "text", std::string_view("{\"id\": 1}\n")));
  BOOST_REQUIRE(
      write_file_atomically(folder / "short", std::string_view(small_recording()).substr(0, 30)));
  for (const auto &[name, reason] :
       std::vector<std::pair<std::string, std::string>>{{"missing", "No such file"},
                                                        {"", "directory"},
                                                        {"empty", "is empty"},
                                                        {"text", "not a recording"},
                                                        {"short", "cut off after 30 bytes"}}) {
    const auto message = error_of(folder / name);
    BOOST_TEST(message.find(reason) != std::string::npos, message);
    BOOST_TEST(message.find((folder / name).string()) != std::string::npos, message);
    BOOST_TEST(message.find('\n') == std::string::npos);
  }
}

} // namespace
} // namespace millrace
