// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "schema/import/import.hpp"

namespace millrace::test {

/// What came out of importing a text, held in memory.
struct imported {
  import_summary summary;
  std::vector<std::pair<group_key, std::uint32_t>> groups;
  std::vector<sealed_episode> episodes;
  std::vector<frame> texts; ///< of the episodes, in their order

  wire::EpisodeStatus status(std::size_t i) const { return episodes.at(i).finish().status(); }
  std::string reason(std::size_t i) const {
    return std::string(text_of(episodes.at(i).finish().reason()));
  }
  /// Ids of the episodes, joined: "0 1 2".
  std::string ids() const {
    std::string out;
    for (const auto &episode : episodes)
      out.append(out.empty() ? "" : " ").append(episode.id());
    return out;
  }
  /// The text of a node for people; "" if it has none.
  std::string text(std::size_t episode, std::uint32_t node) const {
    const auto body = parse<wire::EpisodeText>(texts.at(episode));
    BOOST_REQUIRE(body);
    for (const auto *entry : *(*body)->nodes())
      if (entry->node() == node)
        return std::string(text_of(entry->content()));
    return {};
  }
  /// The notes: "2: traces[0]...", joined by " | ".
  std::string notes() const {
    std::string out;
    for (const auto &[line, text] : summary.notes)
      out += fmt::format("{}{}: {}", out.empty() ? "" : " | ", line, text);
    return out;
  }
};

inline imported import_all(std::string_view text, const import_options &options = {}) {
  imported out;
  import_sink sink;
  sink.group = [&out](const group_key &key, std::uint32_t size) -> status {
    out.groups.emplace_back(key, size);
    return {};
  };
  sink.episode = [&out](const sealed_episode &episode, const frame &body) -> status {
    out.episodes.push_back(episode);
    out.texts.push_back(body);
    return {};
  };
  auto summary = import_text(text, "FILE", options, sink);
  BOOST_REQUIRE(summary);
  out.summary = std::move(*summary);
  return out;
}

/// Some of a record, with one piece of its text in place of another.
inline std::string with(std::string record, std::string_view piece, std::string_view by) {
  const auto at = record.find(piece);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, "no '" << piece << "' in " << record);
  return record.replace(at, piece.size(), by);
}

/// An episode of traces.jsonl that went well: a prompt of 2 tokens, an answer of 3, 2 of them
/// sampled.
inline std::string episode_record(std::string_view id, std::string_view env = "maths",
                                  std::string_view group = "g0") {
  return fmt::format(
      R"({{"id":"{}","env":{{"id":"{}"}},"task":{{"type":"T","data":{{}},"key":"k"}},)"
      R"("group":{{"id":"{}"}},"ok":true,"errors":[],"traces":[{{"id":"t","agent":{{"name":"solver","trainable":true}},)"
      R"("nodes":[{{"message":{{"role":"user","content":"ask"}},"sampled":false,"token_ids":[1,2],"mask":[false,false],"is_content":[],"logprobs":[]}},)"
      R"({{"parent":0,"message":{{"role":"assistant","content":"say"}},"sampled":true,"token_ids":[3,4,5],"mask":[false,true,true],"is_content":[],"logprobs":[-0.5,0.0]}}],)"
      R"("rewards":{{"right":{{"score":0.5,"weight":2.0}}}},"metrics":{{"m":1.0}},"info":{{}},"ok":true,"is_completed":true,"errors":[]}}]}})",
      id, env, group);
}

/// A rollout of NeMo Gym with one turn: a prompt of 3 tokens, 2 sampled.
inline std::string rollout_record(int task, int slot) {
  return fmt::format(
      R"({{"responses_create_params":{{"input":"ask"}},"response":{{"id":"r","error":null,"output":[)"
      R"({{"type":"reasoning","summary":[{{"text":"think","type":"summary_text"}}]}},)"
      R"({{"type":"message","role":"assistant","content":[{{"text":"say","type":"output_text"}}],"prompt_token_ids":[1,2,3],"generation_token_ids":[4,5],"generation_log_probs":[-0.5,0.0]}}]}},)"
      R"("reward":1.0,"agent_ref":{{"name":"agent"}},"_ng_task_index":{},"_ng_rollout_index":{}}})",
      task, slot);
}

} // namespace millrace::test
