// SPDX-License-Identifier: Apache-2.0
// schema_seeds tests/fuzz/corpus: writes first inputs for the fuzzers of the schema folder, so that
// libFuzzer does not begin from nothing. To be run again when the schema changes.
#include <cstdio>
#include <filesystem>
#include <string>

#include "runtime/file.hpp"
#include "schema/planner_log.hpp"
#include "schema/recording_writer.hpp"
#include "tests/support/episodes.hpp"
#include "tests/support/fuzz_parts.hpp"
#include "tests/support/sample_log.hpp"

namespace {

using namespace millrace;
using flatbuffers::FlatBufferBuilder;

std::filesystem::path root;

void save(const std::string &fuzzer, const std::string &name, const std::string &bytes) {
  std::filesystem::create_directories(root / fuzzer);
  if (const auto wrote = write_file_atomically(root / fuzzer / name, bytes); !wrote) {
    std::fprintf(stderr, "%s\n", wrote.error().message.c_str());
    std::exit(1);
  }
}

/// An input as body_fuzz.cpp reads it: a shift in memory, no array parts, the body.
void save_body(const std::string &name, const frame &body) {
  const std::string text(reinterpret_cast<const char *>(body.data()), body.size());
  save("body", name, std::string{'\0', '\0'} + text);
  save("body", name + "_misaligned", std::string{'\4', '\0'} + text);
}

/// One of every feature: experts, an image, a fork, streams, two traces.
frame_data rich_episode() {
  auto data = test::some_episode("rich");
  data.nodes[0].mm_token_type_ids = std::vector<std::uint8_t>{0, 1, 0};
  data.nodes[0].tensors.push_back(
      {"pixel_values", dtype::float32, {2, 2}, test::bytes_of(std::vector<float>{0, 1, 2, 3})});
  data.nodes[0].tensors.push_back(
      {"image_grid_thw", dtype::int64, {1, 3}, test::bytes_of(std::vector<std::int64_t>{1, 1, 2})});
  data.nodes[1].routed_experts = test::some_experts(5);
  data.nodes[1].advantages = std::vector<float>(5, 0.5F);
  data.nodes[1].ce_weights = std::vector<float>(5, 1);
  data.nodes.push_back(test::some_node(2, "assistant", 2));
  data.nodes[2].parent = 0; // a fork
  data.nodes.push_back(test::some_node(0, "user", 1));
  data.nodes[3].trace = 1;
  data.finish->traces.push_back({.id = "t1", .agent = "judge", .agent_trainable = false});
  count_whole_episode(data);
  return data;
}

message group_annotations() {
  FlatBufferBuilder builder;
  const wire::StreamSpec absent(wire::StreamRule::Absent, 0);
  wire::SampleAnnotationBuilder sample(builder);
  sample.add_kept(true);
  sample.add_rl(&absent);
  sample.add_ce(&absent);
  sample.add_ref_kl(&absent);
  const auto samples = builder.CreateVector(std::vector{sample.Finish()});
  wire::TraceAnnotationBuilder trace(builder);
  trace.add_advantage(0.5F);
  trace.add_samples(samples);
  const auto traces = builder.CreateVector(std::vector{trace.Finish()});
  const auto key = create_key(builder, test::some_key());
  wire::GroupAnnotationsBuilder root_table(builder);
  root_table.add_key(key);
  root_table.add_traces(traces);
  return {finish_body<wire::GroupAnnotations>(builder, root_table.Finish())};
}

message bin_plan() {
  FlatBufferBuilder builder;
  const auto group = wire::CreateGroupRef(builder, create_key(builder, test::some_key()));
  const auto groups = builder.CreateVector(std::vector{group});
  const std::vector<wire::Piece> pieces{wire::Piece(0, 0, 0, 0, 8, 0)};
  const auto pieces_at = builder.CreateVectorOfStructs(pieces);
  wire::BinPlanBuilder plan(builder);
  plan.add_groups(groups);
  plan.add_pieces(pieces_at);
  return {finish_body<wire::BinPlan>(builder, plan.Finish())};
}

message micro_batch() {
  FlatBufferBuilder builder;
  const auto ids = builder.CreateVector(std::vector<std::int32_t>{1, 2, 3});
  const auto flags = builder.CreateVector(std::vector<std::uint8_t>{0, 3, 3});
  const auto sequences = builder.CreateVector(std::vector<std::uint32_t>{3});
  const auto encodings = builder.CreateVector(std::vector<std::uint8_t>{1});
  const auto values = builder.CreateVector(std::vector<float>{-0.5F, -0.25F});
  const auto stream = wire::CreateStream(builder, encodings, values);
  wire::MicroBatchBuilder batch(builder);
  batch.add_input_ids(ids);
  batch.add_flags(flags);
  batch.add_sequence_lengths(sequences);
  batch.add_inference_logprobs(stream);
  return {finish_body<wire::MicroBatch>(builder, batch.Finish())};
}

message episode_text() {
  FlatBufferBuilder builder;
  const auto node = wire::CreateNodeText(builder, 0, 1, builder.CreateString("assistant"),
                                         builder.CreateString("42"));
  const auto nodes = builder.CreateVector(std::vector{node});
  const auto text = wire::CreateEpisodeText(builder, create_key(builder, test::some_key()),
                                            builder.CreateString("e0"), nodes);
  return {finish_body<wire::EpisodeText>(builder, text)};
}

/// A recording with every kind of record.
std::string recording() {
  const auto path = root / "recording.tmp";
  auto writer = recording_writer::create(path, "corpus").value();
  const auto loose = test::some_episode_in_two("loose");
  const bool wrote = writer.append_group_size(test::some_key(), 3) &&
                     writer.append(record_kind::frame, encode(loose[0]).value()) &&
                     writer.append(test::sealed({rich_episode()})) &&
                     writer.append(record_kind::frame, encode(loose[1]).value()) &&
                     writer.append(record_kind::text, episode_text()) && writer.finish();
  MILLRACE_ASSERT(wrote, "'{}' was not written", path.string());
  auto bytes = read_file(path, 1 << 20).value();
  std::filesystem::remove(path);
  return bytes;
}

/// A log of these records.
std::string planner_log_of(const std::vector<log_record> &records) {
  const auto path = root / "planner_log.tmp";
  auto log =
      planner_log::open(path, {.sync = false}, [](std::uint64_t, const log_record &) -> status {
        return {};
      }).value();
  for (const auto &one : records) {
    const auto wrote = log.append(one);
    MILLRACE_ASSERT(wrote, "{}", wrote.error().message);
  }
  auto bytes = read_file(path, 1 << 20).value();
  std::filesystem::remove(path);
  return bytes;
}

void save_planner_logs() {
  const auto records = test::sample_log();
  const auto whole = planner_log_of(records);
  save("planner_log", "whole", '\0' + whole);
  save("planner_log", "repaired", '\1' + whole);
  save("planner_log", "torn", '\0' + whole.substr(0, whole.size() - 10));
  save("planner_log", "made", '\0' + whole.substr(0, 30));
  for (const auto &one : records)
    save("planner_log", std::string(name_of(one)), '\1' + planner_log_of({one}));
}

void save_bodies() {
  FlatBufferBuilder size;
  const auto group_size = wire::CreateGroupSize(size, create_key(size, test::some_key()), 8);
  auto bare = rich_episode();
  for (auto &node : bare.nodes) { // the fuzzer of bodies has no array parts
    node.routed_experts.reset();
    node.tensors.clear();
  }
  const auto file = recording();
  auto reader =
      recording_reader::over(frame::copy_of(std::as_bytes(std::span(file))), "corpus").value();
  while (reader.next())
    ;
  save_body("sealed_index", test::sealed({bare}).parts().front());
  save_body("group_annotations", group_annotations().front());
  save_body("bin_plan", bin_plan().front());
  save_body("micro_batch", micro_batch().front());
  save_body("group_size", finish_body<wire::GroupSize>(size, group_size));
  save_body("text", episode_text().front());
  save_body("index", reader.index().value().bytes());
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: schema_seeds CORPUS-FOLDER\n");
    return 2;
  }
  root = argv[1];
  save_bodies();
  save("sealed_episode", "plain", test::input_of(test::sealed({test::some_episode()}).parts()));
  save("sealed_episode", "in_two",
       test::input_of(test::sealed(test::some_episode_in_two()).parts()));
  save("sealed_episode", "rich", test::input_of(test::sealed({rich_episode()}).parts()));
  const auto whole = recording();
  save("recording", "whole", '\0' + whole);
  save("recording", "repaired", '\1' + whole);
  save("recording", "torn", '\0' + whole.substr(0, whole.size() / 2));
  save("recording", "empty", '\1' + whole.substr(0, 64));
  save_planner_logs();
  return 0;
}
