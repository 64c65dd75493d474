// SPDX-License-Identifier: Apache-2.0
#include "schema/import/import.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>

#include <sys/resource.h>

#include "runtime/file.hpp"
#include "runtime/json.hpp"
#include "runtime/json_out.hpp"
#include "runtime/utf8.hpp"
#include "schema/recording_writer.hpp"
#include "tests/unit/schema/import/imported.hpp"

using namespace millrace;
using namespace millrace::test;
using wire::EpisodeStatus;
namespace fs = std::filesystem;

namespace {

struct folder {
  fs::path path;
  folder() {
    auto name = (fs::temp_directory_path() / "millrace-import-XXXXXX").string();
    BOOST_REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~folder() { fs::remove_all(path); }
};

std::string group_of_8(std::string_view broken) {
  std::string file;
  for (int i = 0; i < 8; ++i)
    file += (i == 3 ? std::string(broken) : episode_record(std::to_string(i))) + "\n";
  return file;
}

/// A group of 8 whose fourth record is broken in this way: the siblings are untouched, the broken
/// one is rejected with this note.
void check_one_of_8(std::string_view broken, std::string_view note) {
  const auto got = import_all(group_of_8(broken));
  BOOST_TEST(got.summary.ok == 7);
  BOOST_TEST(got.summary.rejected == 1);
  BOOST_TEST(got.groups.at(0).second == 8);
  BOOST_REQUIRE(got.episodes.size() == 8);
  BOOST_TEST((got.status(3) == EpisodeStatus::Rejected));
  BOOST_TEST(got.notes() == note);
}

} // namespace

BOOST_AUTO_TEST_SUITE(importing)

BOOST_AUTO_TEST_CASE(a_record_ends_at_lf_only_and_its_text_comes_back_byte_for_byte) {
  const std::string odd = "a\xC2\x85"
                          "b\xE2\x80\xA8"
                          "c\xE2\x80\xA9"
                          "d";
  const auto got = import_all(episode_record("0") + "\n" +
                              with(episode_record("1"), "\"say\"", "\"" + odd + "\"") + "\n" +
                              episode_record("2"));
  BOOST_TEST(got.summary.lines == 3);
  BOOST_TEST(got.summary.ok == 3);
  BOOST_TEST(got.text(1, 1) == odd);
}

BOOST_AUTO_TEST_CASE(a_lone_surrogate_rejects_its_episode_and_no_other) {
  check_one_of_8(with(episode_record("3"), "\"ask\"", R"("cut \ud83d")"),
                 R"(4: traces[0].nodes[0].message.content: \ud83d is half of a character)");
  check_one_of_8(with(episode_record("3"), "\"ask\"", R"("\ude00 cut")"),
                 R"(4: traces[0].nodes[0].message.content: \ude00 is half of a character)");
}

BOOST_AUTO_TEST_CASE(bytes_that_are_not_utf8_reject_their_episode_and_no_other) {
  check_one_of_8(with(episode_record("3"), "\"ask\"", "\"\xED\xA0\xBD\""),
                 "4: traces[0].nodes[0].message.content: byte 0xed is not UTF-8");
}

BOOST_AUTO_TEST_CASE(what_is_reported_about_a_broken_character_is_itself_writable) {
  const auto got = import_all(group_of_8(with(episode_record("3"), "\"ask\"", R"("\ud83d")")));
  BOOST_TEST(is_utf8(got.reason(3)));
  json::tree out;
  out["reason"] = got.reason(3);
  json::document document;
  BOOST_TEST(document.parse(json::dump(out)).has_value());
}

BOOST_AUTO_TEST_CASE(a_broken_name_is_not_guessed) {
  const auto got =
      import_all(with(episode_record("e"), R"("group":{"id":"g0"})", R"("group":{"id":"\ud83d"})"));
  BOOST_TEST(got.groups.empty());
  BOOST_TEST(got.notes() == R"(1: group.id: \ud83d is half of a character)");
}

BOOST_AUTO_TEST_CASE(deep_nesting_is_an_error_and_the_rest_is_imported) {
  const auto deep =
      with(episode_record("3"), R"("data":{})", R"("data":)" + std::string(100'000, '['));
  const auto got = import_all(group_of_8(deep));
  BOOST_TEST(got.summary.ok == 7);
  BOOST_TEST(got.summary.refused == 1);
  BOOST_TEST(got.notes().find("nested deeper than 512 levels") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(lines_that_are_not_json_are_counted_and_the_rest_is_imported) {
  const auto got = import_all("<PLACEHOLDER ROW>\n" + episode_record("e") + "\n[1]\n{\"a\":1}\n{");
  BOOST_TEST(got.summary.ok == 1);
  BOOST_TEST(got.summary.refused == 4);
  BOOST_TEST(got.notes() == "1: '<PLACEHOLDER ROW>' is not JSON (byte 0) | "
                            "3: a record is an object in {}; this line is something else | "
                            "4: of no known format: it has neither traces nor a response | "
                            "5: the text ends inside a value (byte 1)");
}

BOOST_AUTO_TEST_CASE(a_line_over_the_limit_is_refused) {
  import_options options;
  options.line_bytes = episode_record("e").size();
  const auto got = import_all(episode_record("e") + "\n" + episode_record("longer"), options);
  BOOST_TEST(got.summary.ok == 1);
  BOOST_TEST(got.notes().find("2: a line of ") == 0);
}

BOOST_AUTO_TEST_CASE(the_old_results_format_is_named_once) {
  std::string file;
  for (int i = 0; i < 150; ++i)
    file += R"({"id":0,"prompt":[],"completion":[],"task":"default","reward":0.0})"
            "\n";
  const auto got = import_all(file);
  BOOST_TEST(got.summary.old_format == 150);
  BOOST_TEST(got.summary.imported() == 0);
  BOOST_TEST(got.summary.text() ==
             "FILE: 150 lines (from line 1 to 150) in verifiers' old results format, which is text "
             "without token ids: record traces.jsonl with verifiers 1 or prime-rl\n"
             "FILE: 150 records: 0 ok, 0 errored, 150 refused; 0 groups, 0 nodes, 0 tokens\n");
}

BOOST_AUTO_TEST_CASE(the_key_is_the_whole_key_and_order_does_not_matter) {
  std::string file;
  // Both environments number their tasks alike; siblings are far apart.
  for (int slot = 0; slot < 8; ++slot)
    for (const char *env : {"A", "B"})
      for (const char *group : {"g0", "g1"})
        file += episode_record(std::to_string((slot * 5 + 3) % 8), env, group) + "\n";
  const auto got = import_all(file);
  BOOST_REQUIRE(got.groups.size() == 4);
  for (const auto &[key, size] : got.groups)
    BOOST_TEST(size == 8);
  std::set<std::string> seen;
  for (const auto &episode : got.episodes)
    seen.insert(key_of(*episode.head().key()).text() + "#" + std::string(episode.id()));
  BOOST_TEST(seen.size() == 32);
}

BOOST_AUTO_TEST_CASE(an_episode_that_is_there_twice_counts_once) {
  const auto got = import_all(episode_record("e") + "\n" + episode_record("e"));
  BOOST_TEST(got.groups.at(0).second == 1);
  BOOST_TEST(got.notes() == "2: episode 'e' of group maths/k/g0 is on line 1 already");
}

BOOST_AUTO_TEST_CASE(episodes_for_evaluation_are_taken_only_when_asked) {
  const auto eval = with(episode_record("e"), R"("ok":true,)",
                         R"("run":{"id":"r","work":{"type":"eval","step":1}},"ok":true,)");
  const auto skipped = import_all(eval + "\n" + episode_record("f"));
  BOOST_TEST(skipped.summary.eval_skipped == 1);
  BOOST_TEST(skipped.ids() == "f");
  import_options options;
  options.eval = true;
  const auto taken = import_all(eval, options);
  BOOST_REQUIRE(taken.episodes.size() == 1);
  BOOST_TEST(taken.episodes[0].head().eval());
}

BOOST_AUTO_TEST_CASE(every_line_is_counted_in_one_place) {
  const auto got =
      import_all(episode_record("a") + "\n" + with(episode_record("b"), "[1,2]", "[1]") +
                 "\nnonsense\n" + with(episode_record("c"), R"("ok":true)", R"("ok":false)") +
                 "\n{\"prompt\":0,\"completion\":0}\n");
  const auto &s = got.summary;
  BOOST_TEST(s.lines == 5);
  BOOST_TEST(s.ok + s.errored + s.rejected + s.refused + s.old_format + s.eval_skipped == s.lines);
  BOOST_TEST(s.groups == 1);
  BOOST_TEST(s.tokens == 10);
}

BOOST_AUTO_TEST_CASE(notes_are_kept_up_to_a_number_and_all_are_counted) {
  import_options options;
  options.notes = 2;
  const auto got = import_all("x\nx\nx\n", options);
  BOOST_TEST(got.summary.notes.size() == 2);
  BOOST_TEST(got.summary.note_count == 3);
  BOOST_TEST(got.summary.text().find("FILE: and 1 more like these\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_error_of_the_sink_ends_the_import) {
  import_sink sink;
  sink.episode = [](const sealed_episode &, const frame &) -> status {
    return fail(errc::io, "full");
  };
  const auto got = import_text(episode_record("e"), "FILE", {}, sink);
  BOOST_REQUIRE(!got);
  BOOST_TEST(got.error().message == "full");
}

BOOST_AUTO_TEST_CASE(a_file_becomes_a_finished_recording) {
  const folder dir;
  BOOST_REQUIRE(write_file_atomically(dir.path / "in.jsonl", group_of_8("nonsense")));
  const auto got = import_file(dir.path / "in.jsonl", dir.path / "out.mrec", {});
  BOOST_REQUIRE(got);
  BOOST_TEST(got->ok == 7);
  auto recording = recording_reader::open(dir.path / "out.mrec");
  BOOST_REQUIRE(recording);
  const auto counts = count_recording(*recording);
  BOOST_TEST(counts.episodes == 7);
  BOOST_TEST(counts.tokens == 35);
  BOOST_TEST(counts.groups.at(0).size == 7);
  BOOST_TEST(counts.conflicts.empty());
}

BOOST_AUTO_TEST_CASE(where_nothing_was_imported_there_is_no_recording) {
  const folder dir;
  BOOST_REQUIRE(write_file_atomically(dir.path / "in.jsonl", ""));
  const auto got = import_file(dir.path / "in.jsonl", dir.path / "out.mrec", {});
  BOOST_REQUIRE(got);
  BOOST_TEST(got->imported() == 0);
  BOOST_TEST(!fs::exists(dir.path / "out.mrec"));
  BOOST_TEST(got->text().find(": 0 records: ") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_full_disk_leaves_no_recording) {
  const folder dir;
  std::string file;
  for (int i = 0; i < 100; ++i)
    file += episode_record(std::to_string(i)) + "\n";
  BOOST_REQUIRE(write_file_atomically(dir.path / "in.jsonl", file));
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit limit = before;
  limit.rlim_cur = 20'000;
  setrlimit(RLIMIT_FSIZE, &limit);
  const auto got = import_file(dir.path / "in.jsonl", dir.path / "out.mrec", {});
  setrlimit(RLIMIT_FSIZE, &before);
  BOOST_REQUIRE(!got);
  BOOST_TEST((got.error().code == errc::no_space));
  BOOST_TEST(std::distance(fs::directory_iterator(dir.path), fs::directory_iterator{}) == 1);
}

BOOST_AUTO_TEST_CASE(a_missing_file_a_directory_and_the_input_itself_are_refused) {
  const folder dir;
  BOOST_TEST((import_file(dir.path / "none", dir.path / "o", {}).error().code == errc::not_found));
  BOOST_TEST(import_file(dir.path, dir.path / "o", {}).error().message.find("directory") !=
             std::string::npos);
  BOOST_REQUIRE(write_file_atomically(dir.path / "in", episode_record("e")));
  BOOST_TEST(
      (import_file(dir.path / "in", dir.path / "in", {}).error().code == errc::bad_argument));
}

BOOST_AUTO_TEST_SUITE_END()
