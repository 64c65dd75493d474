// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/routing.hpp"

namespace millrace {

namespace {

using wire::StreamRule;
using wire::StreamSpec;

StreamSpec from_nodes(bool nonzero) {
  return StreamSpec(nonzero ? StreamRule::Nodes : StreamRule::Absent, 0);
}

/// @param ce its nodes have some ce weight: they came with it, or echo gives it
sample_verdict route_sample(const wire::BranchHeader &branch, std::optional<float> rl_weight,
                            action_loss loss, bool ce) {
  sample_verdict out;
  out.rl = rl_weight ? StreamSpec(StreamRule::OnMask, *rl_weight) : from_nodes(branch.rl_nonzero());
  out.ce = from_nodes(ce);
  out.ref_kl = from_nodes(branch.ref_kl_nonzero());
  if (loss == action_loss::rl)
    return out;
  out.rl = StreamSpec(StreamRule::Zeros, 0);
  if (loss == action_loss::ce)
    out.ce = StreamSpec(ce ? StreamRule::NodesAndOnMask : StreamRule::OnMask, 1.0F);
  else
    out.ref_kl = StreamSpec(StreamRule::OnMask, 1.0F);
  return out;
}

} // namespace

std::vector<trace_verdict> route(const wire::GroupHeader &group, const scored_group &scores,
                                 action_loss loss, const std::vector<echo_role> &echo) {
  std::vector<std::string_view> roles;
  if (group.roles() != nullptr)
    for (const auto *role : *group.roles())
      roles.push_back(text_of(role));
  std::vector<trace_verdict> out;
  for (const auto &score : scores.traces) {
    trace_verdict verdict{.score = score, .samples = {}, .reference = {}};
    const auto &trace = trace_of(group, score);
    const auto echoed = echo_branches(trace, roles, echo);
    for (std::uint32_t b = 0; b < echoed.size(); ++b) {
      const auto &branch = *trace.branches()->Get(b);
      verdict.samples.push_back(
          route_sample(branch, scores.rl_weight, loss, branch.ce_nonzero() || echoed[b] != 0));
      verdict.samples.back().branch = b;
    }
    out.push_back(std::move(verdict));
  }
  return out;
}

} // namespace millrace
