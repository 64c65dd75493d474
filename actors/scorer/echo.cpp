// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/echo.hpp"

#include "actors/graph/echo.hpp"

namespace millrace {

namespace {

bool has(std::uint8_t flags, wire::NodeFlag bit) {
  return (flags & static_cast<std::uint8_t>(bit)) != 0;
}

float alpha_of(std::string_view name, const std::vector<echo_role> &roles) {
  for (const auto &entry : roles)
    if (entry.role == name)
      return entry.alpha;
  return 0;
}

std::vector<float> weights_of(const wire::TraceHeader &trace,
                              const std::vector<std::string_view> &names,
                              const std::vector<echo_role> &roles) {
  std::vector<float> alphas;
  for (auto name : names)
    alphas.push_back(alpha_of(name, roles));
  const auto parents = span_of(trace.node_parents());
  const auto flags = span_of(trace.node_flags());
  const auto role_of = span_of(trace.node_roles());
  std::vector<echo_node> nodes;
  for (std::size_t i = 0; i < parents.size(); ++i)
    nodes.push_back({.parent = parents[i],
                     .sampled = has(flags[i], wire::NodeFlag::Sampled),
                     .has_tokens = has(flags[i], wire::NodeFlag::EchoTokens),
                     .alpha = role_of[i] < alphas.size() ? alphas[role_of[i]] : 0.0F});
  return echo_weights(nodes);
}

} // namespace

std::vector<echo_role> echo_roles_of(const env_config &config) {
  std::vector<echo_role> out;
  if (config.algorithm != "echo")
    return out;
  for (const auto &[role, alpha] : config.echo.roles)
    if (const auto weight = static_cast<float>(alpha); weight > 0)
      out.push_back({role, weight});
  return out;
}

std::vector<std::uint8_t> echo_branches(const wire::TraceHeader &trace,
                                        const std::vector<std::string_view> &names,
                                        const std::vector<echo_role> &roles) {
  const auto branches = trace.branches() == nullptr ? 0 : trace.branches()->size();
  std::vector<std::uint8_t> out(branches, 0);
  if (roles.empty())
    return out;
  const auto weights = weights_of(trace, names, roles);
  const auto parents = span_of(trace.node_parents());
  std::vector<std::uint8_t> seen(parents.size(), 0);
  for (flatbuffers::uoffset_t b = 0; b < branches; ++b)
    // What lies above a node that an earlier branch contains, it contains too.
    for (auto i = static_cast<std::int64_t>(trace.branches()->Get(b)->leaf());
         i >= 0 && seen[static_cast<std::size_t>(i)] == 0;
         i = parents[static_cast<std::size_t>(i)]) {
      seen[static_cast<std::size_t>(i)] = 1;
      if (weights[static_cast<std::size_t>(i)] != 0)
        out[b] = 1;
    }
  return out;
}

} // namespace millrace
