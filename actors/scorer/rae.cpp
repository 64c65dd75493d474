// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/rae.hpp"

#include <algorithm>
#include <cmath>

#include "schema/body.hpp"

namespace millrace {

result<group_score> rae(std::span<const trace_score_input> traces, double decay,
                        agent_baselines &baselines) {
  group_score out;
  for (const auto &trace : traces) {
    auto found = baselines.find(trace.agent);
    if (found == baselines.end())
      found = baselines.emplace(trace.agent, 0.0).first;
    auto &baseline = found->second;
    const auto advantage = static_cast<float>(trace.reward - baseline);
    if (!std::isfinite(advantage))
      return fail(errc::bad_value,
                  "rae: the advantage of episode {} is {} (reward {}, baseline {} of agent '{}')",
                  trace.episode, advantage, trace.reward, baseline, trace.agent);
    baseline = decay * baseline + (1 - decay) * trace.reward;
    out.advantages.emplace_back(advantage);
  }
  return out;
}

std::vector<std::uint8_t> encode_baselines(const agent_baselines &baselines) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<wire::AgentBaseline>> agents;
  for (const auto &[agent, value] : baselines)
    agents.push_back(wire::CreateAgentBaseline(builder, builder.CreateString(agent), value));
  const auto agents_at = builder.CreateVector(agents);
  const auto bytes =
      finish_body<wire::AgentBaselines>(builder, wire::CreateAgentBaselines(builder, agents_at));
  const auto *data = reinterpret_cast<const std::uint8_t *>(bytes.data());
  return {data, data + bytes.size()};
}

result<agent_baselines> decode_baselines(std::span<const std::uint8_t> state) {
  agent_baselines out;
  if (state.empty())
    return out;
  const auto parsed = parse<wire::AgentBaselines>(frame::copy_of(std::as_bytes(state)));
  if (!parsed)
    return tl::unexpected(parsed.error());
  if ((*parsed)->agents() == nullptr)
    return out;
  for (const auto *entry : *(*parsed)->agents()) {
    const std::string agent(text_of(entry->agent()));
    if (!out.empty() && agent <= out.rbegin()->first)
      return fail(errc::bad_value, "agent '{}' does not come after '{}'", agent,
                  out.rbegin()->first);
    if (!std::isfinite(entry->baseline()))
      return fail(errc::bad_value, "the baseline of agent '{}' is {}", agent, entry->baseline());
    out.emplace_hint(out.end(), agent, entry->baseline());
  }
  if (!std::ranges::equal(encode_baselines(out), state))
    return fail(errc::bad_format, "its bytes are not those of its values");
  return out;
}

} // namespace millrace
