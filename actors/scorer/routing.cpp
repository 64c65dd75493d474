// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/routing.hpp"

namespace millrace {

namespace {

using wire::StreamRule;
using wire::StreamSpec;

StreamSpec from_nodes(bool nonzero) {
  return StreamSpec(nonzero ? StreamRule::Nodes : StreamRule::Absent, 0);
}

sample_verdict route_sample(const wire::BranchHeader &branch, std::optional<float> rl_weight,
                            action_loss loss) {
  sample_verdict out;
  out.rl = rl_weight ? StreamSpec(StreamRule::OnMask, *rl_weight) : from_nodes(branch.rl_nonzero());
  out.ce = from_nodes(branch.ce_nonzero());
  out.ref_kl = from_nodes(branch.ref_kl_nonzero());
  if (loss == action_loss::rl)
    return out;
  out.rl = StreamSpec(StreamRule::Zeros, 0);
  if (loss == action_loss::ce)
    out.ce =
        StreamSpec(branch.ce_nonzero() ? StreamRule::NodesAndOnMask : StreamRule::OnMask, 1.0F);
  else
    out.ref_kl = StreamSpec(StreamRule::OnMask, 1.0F);
  return out;
}

} // namespace

std::vector<trace_verdict> route(const wire::GroupHeader &group, const scored_group &scores,
                                 action_loss loss) {
  std::vector<trace_verdict> out;
  for (const auto &score : scores.traces) {
    trace_verdict verdict{.score = score, .samples = {}};
    if (const auto *branches = trace_of(group, score).branches(); branches != nullptr)
      for (const auto *branch : *branches) {
        verdict.samples.push_back(route_sample(*branch, scores.rl_weight, loss));
        verdict.samples.back().branch = static_cast<std::uint32_t>(verdict.samples.size() - 1);
      }
    out.push_back(std::move(verdict));
  }
  return out;
}

} // namespace millrace
