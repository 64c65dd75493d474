// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sample_log.hpp"

#include <string>

#include "schema/body.hpp"
#include "schema/episode_state.hpp"

namespace millrace::test {

namespace {

using state = episode_state;

std::uint8_t number_of(state what) { return static_cast<std::uint8_t>(what); }

digest128 digest_with(std::uint8_t byte) {
  digest128 out;
  out.bytes.fill(byte);
  return out;
}

log_group group(std::uint64_t ordinal, state first, std::string why = {}) {
  log_group out;
  out.ordinal = ordinal;
  out.key = {"sampled", "maths", "task", std::to_string(ordinal)};
  out.states = {number_of(first), number_of(state::pruned), number_of(state::errored)};
  out.samples = {{number_of(first), 2, 100}, {number_of(state::pruned), 1, 10}};
  out.cut_tokens = 7;
  out.why = std::move(why);
  return out;
}

frame annotations(const group_key &key) {
  flatbuffers::FlatBufferBuilder builder;
  const auto at = create_key(builder, key);
  return finish_body<wire::GroupAnnotations>(builder, wire::CreateGroupAnnotations(builder, at));
}

frame plan(std::uint64_t step, std::uint32_t rank) {
  flatbuffers::FlatBufferBuilder builder;
  return finish_body<wire::BinPlan>(builder, wire::CreateBinPlan(builder, step, rank, 0));
}

/// With a group for each ordinal, and a micro batch for each of two ranks.
log_commit commit(std::uint64_t step, std::uint8_t digest,
                  std::initializer_list<std::uint64_t> ordinals) {
  log_commit out;
  out.step = step;
  out.digest = digest_with(digest);
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    out.bins.push_back({rank, 0, digest_with(digest), 1000, plan(step, rank)});
  for (const auto ordinal : ordinals) {
    out.groups.push_back(group(ordinal, state::trained));
    out.annotations.push_back(annotations(out.groups.back().key));
  }
  out.traces = 3 * ordinals.size();
  out.samples = 2 * ordinals.size();
  out.tokens = 100 * ordinals.size();
  out.padding = 5;
  out.dummies = 1;
  out.wire_bytes = 2000;
  return out;
}

log_open start(std::uint64_t epoch) {
  return {"sample", digest_with(0xAB), epoch, "0.1.0", "c0ffee", "sample.mrec", 2};
}

log_scored scored() {
  return {5, 0, "maths/solver", 1, {}, {1, 2}, annotations(group(5, state::trained).key)};
}

} // namespace

std::vector<log_record> sample_log() {
  return {start(1),
          log_generation{1, 1},
          log_settled{{group(2, state::expired, "2 of 3 episodes came")}},
          commit(1, 0x11, {0, 1}),
          log_trained{1, 200, 0, 0},
          log_durable{1},
          commit(2, 0x22, {3}),
          log_trained{2, 100, 0, 0},
          commit(3, 0x33, {4}),
          start(2),
          log_rolled_back{2, 3, 2},
          log_generation{2, 2},
          scored(),
          commit(2, 0x44, {4, 5}),
          log_trained{2, 150, 50, 0},
          log_settled{{group(6, state::gated)}},
          commit(3, 0x55, {7})};
}

} // namespace millrace::test
