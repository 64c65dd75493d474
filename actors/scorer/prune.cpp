// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/prune.hpp"

#include "actors/scorer/reference.hpp"

namespace millrace {

namespace {

using wire::StreamRule;

/// Where a sample's rl weight is nonzero on trainable tokens.
struct rl_share {
  bool zero_advantage = false;
  bool nonzero_advantage = false;
};

rl_share rl_weights_of(const wire::BranchHeader &branch, std::optional<float> advantage,
                       const wire::StreamSpec &rl) {
  switch (rl.rule()) {
  case StreamRule::Zeros:
    return {};
  case StreamRule::Nodes:
    if (!advantage)
      return {branch.rl_on_zero_advantage(), branch.rl_on_nonzero_advantage()};
    return {branch.rl_nonzero_on_mask() && *advantage == 0,
            branch.rl_nonzero_on_mask() && *advantage != 0};
  case StreamRule::Absent:
  case StreamRule::OnMask:
  case StreamRule::NodesAndOnMask:
    break;
  }
  if (!advantage)
    return {branch.zero_advantage_on_mask(), branch.nonzero_advantage_on_mask()};
  return {*advantage == 0, *advantage != 0};
}

bool weighs(const wire::StreamSpec &stream) {
  return stream.rule() != StreamRule::Absent && stream.rule() != StreamRule::Zeros;
}

void prune_sample(const wire::BranchHeader &branch, std::optional<float> advantage,
                  sample_verdict &sample) {
  // Of a branch without advantages the header says neither zero nor nonzero.
  const auto share = rl_weights_of(branch, advantage, sample.rl);
  if (!share.zero_advantage)
    return; // nothing changes: it stays as it was, even with nothing to train
  sample.kept = share.nonzero_advantage || weighs(sample.ce) || weighs(sample.ref_kl);
  if (!sample.kept)
    return;
  sample.prune_rl = true;
  if (sample.rl.rule() == StreamRule::Absent)
    sample.rl = wire::StreamSpec(StreamRule::OnMask, 1.0F);
}

} // namespace

void prune(const wire::GroupHeader &group, std::vector<trace_verdict> &traces) {
  for (auto &trace : traces)
    for (auto &sample : trace.samples)
      prune_sample(*trace_of(group, trace.score).branches()->Get(sample.branch),
                   trace.score.advantage, sample);
}

status check_advantages(const wire::GroupHeader &group, const std::vector<trace_verdict> &traces) {
  for (const auto &trace : traces)
    for (const auto &sample : trace.samples) {
      const auto &header = trace_of(group, trace.score);
      const auto &branch = *header.branches()->Get(sample.branch);
      if (trace.score.advantage || branch.advantages() || !sample.kept ||
          sample.rl.rule() == StreamRule::Zeros ||
          (sample.rl.rule() == StreamRule::Nodes && !branch.rl_nonzero_on_mask()))
        continue;
      return fail(
          errc::bad_value,
          "episode '{}', trace {}, branch with leaf {}: its rl loss has {} trainable tokens "
          "and no advantages: let an algorithm score this environment",
          text_of(group.episodes()->Get(trace.score.episode)->id()), trace.score.trace,
          branch.leaf(), branch.trainable());
    }
  return {};
}

status check_reference(const wire::GroupHeader &group, const std::vector<trace_verdict> &traces) {
  for (const auto &trace : traces) {
    if (!trace.reference.empty())
      continue; // they fill every node that came without
    const auto &header = trace_of(group, trace.score);
    for (const auto &sample : trace.samples) {
      const auto &branch = *header.branches()->Get(sample.branch);
      const bool enough = sample.ref_kl.rule() == StreamRule::OnMask ? !lacks_reference(header)
                                                                     : branch.reference_logprobs();
      if (!sample.kept || !weighs(sample.ref_kl) || enough)
        continue;
      return fail(errc::bad_value,
                  "episode '{}', trace {}, branch with leaf {}: its ref_kl loss trains {} tokens "
                  "and they lack reference logprobs: let opd or opsd score this environment",
                  text_of(group.episodes()->Get(trace.score.episode)->id()), trace.score.trace,
                  branch.leaf(), branch.trainable());
    }
  }
  return {};
}

} // namespace millrace
