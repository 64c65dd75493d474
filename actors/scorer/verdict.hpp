// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schema/body.hpp"

namespace millrace {

/// A trace that is scored, and its score.
struct scored_trace {
  std::uint32_t episode = 0;      ///< index into the header's episodes
  std::uint32_t trace = 0;        ///< and into that one's traces
  std::optional<float> advantage; ///< of each trainable token; nothing: those that came with nodes
};

struct scored_group {
  std::vector<scored_trace> traces; ///< the eligible ones, by episode, then trace
  std::optional<float> rl_weight;   ///< of each trainable token; nothing: what came with nodes
};

/// The verdict on one sample; fields as in group.fbs, SampleAnnotation.
struct sample_verdict {
  std::uint32_t branch = 0;
  bool kept = true;
  wire::StreamSpec rl;
  wire::StreamSpec ce;
  wire::StreamSpec ref_kl;
  bool prune_rl = false;
  bool filtered = false;
};

struct trace_verdict {
  scored_trace score;
  std::vector<sample_verdict> samples; ///< one for each branch of the header
  std::vector<float> reference{}; ///< of the trainable tokens of nodes that came without, if given
};

/// What echo gives to the tokens of a role.
struct echo_role {
  std::string role;
  float alpha = 0; ///< weight in the ce component, above 0
};

struct group_verdict {
  bool admitted = true;
  float temperature = 1; ///< at which the group was sampled
  bool as_unit = false;  ///< env.NAME.group_scoring
  std::vector<trace_verdict> traces;
  std::vector<echo_role> echo{}; ///< by role; none: no echo
};

/// A trace that can be scored: it is ok, its agent is trained, something in it is trainable. Its
/// episode must be scored as well.
inline bool is_eligible(const wire::TraceHeader &trace) noexcept {
  return trace.ok() && trace.agent_trainable() && trace.trainable_tokens() > 0;
}

/// An episode whose traces can be scored: it ended well and is for training.
inline bool is_scored(const wire::EpisodeHeader &episode) noexcept {
  return episode.status() == wire::EpisodeStatus::Ok && !episode.eval();
}

/// Names a trace of a group.
struct trace_place {
  std::uint32_t episode = 0; ///< index into the header's episodes
  std::uint32_t trace = 0;   ///< and into that one's traces

  bool operator==(const trace_place &) const = default;
};

/// Calls f(trace_place, wire::TraceHeader) for each eligible trace, by episode, then trace.
template <class F> void for_each_eligible(const wire::GroupHeader &group, F &&f) {
  if (group.episodes() == nullptr)
    return;
  for (std::uint32_t e = 0; e < group.episodes()->size(); ++e) {
    const auto &episode = *group.episodes()->Get(e);
    if (!is_scored(episode) || episode.traces() == nullptr)
      continue;
    for (std::uint32_t t = 0; t < episode.traces()->size(); ++t)
      if (const auto &trace = *episode.traces()->Get(t); is_eligible(trace))
        f(trace_place{e, t}, trace);
  }
}

/// The header that a score belongs to. Precondition: it was scored from this group.
inline const wire::TraceHeader &trace_of(const wire::GroupHeader &group,
                                         const scored_trace &score) noexcept {
  return *group.episodes()->Get(score.episode)->traces()->Get(score.trace);
}

} // namespace millrace
