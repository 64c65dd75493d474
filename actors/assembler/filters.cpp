// SPDX-License-Identifier: Apache-2.0
#include "actors/assembler/filters.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "schema/body.hpp"

namespace millrace {

namespace {

constexpr auto gibberish_bit = static_cast<std::uint8_t>(wire::FilterFlag::Gibberish);
constexpr auto repetition_bit = static_cast<std::uint8_t>(wire::FilterFlag::Repetition);
constexpr float infinity = std::numeric_limits<float>::infinity();

/// The largest float32 that is at most x: a float32 is above x exactly if it is above that one.
float float_at_most(double x) noexcept {
  const auto near = static_cast<float>(x);
  return static_cast<double>(near) > x ? std::nextafter(near, -infinity) : near;
}

/// The smallest float32 that is at least x.
float float_at_least(double x) noexcept { return -float_at_most(-x); }

bool any_below(std::span<const float> values, float bound) noexcept {
  // Vectorises, since it does not leave at the first one.
  std::uint32_t found = 0;
  for (float x : values)
    found |= x < bound ? 1U : 0U;
  return found != 0;
}

bool has_repetition(std::span<const node_view> nodes, const filter_rules::certain_run &rule) {
  std::vector<std::uint64_t> tails(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto parent = nodes[i].parent;
    const auto before = parent < 0 ? 0 : tails[static_cast<std::size_t>(parent)];
    const auto run = find_run(nodes[i].logprobs, before, rule);
    if (run.found)
      return true;
    tails[i] = run.tail;
  }
  return false;
}

} // namespace

filter_rules rules_of(const filter_config &config, std::uint32_t vocab_size) {
  filter_rules out;
  if (const auto &from = config.gibberish; from.action != filter_action::off)
    out.gibberish = {.id_above = static_cast<std::int32_t>(from.token_id_threshold),
                     .logprob_below = float_at_least(-std::log(static_cast<double>(vocab_size)) -
                                                     from.logprob_offset)};
  if (const auto &from = config.repetition; from.action != filter_action::off)
    out.repetition = {.window = from.window,
                      .logprob_above = float_at_most(std::log(from.prob_threshold))};
  return out;
}

bool has_rare_token(const node_view &node, const filter_rules::rare_token &rule) noexcept {
  // Unlikely tokens are rare themselves: nearly always it ends here, without a look at mask or ids.
  if (!any_below(node.logprobs, rule.logprob_below))
    return false;
  std::size_t next = 0;
  for (std::size_t i = 0; i < node.mask.size(); ++i) {
    if (node.mask[i] == 0)
      continue;
    if (node.token_ids[i] > rule.id_above && node.logprobs[next] < rule.logprob_below)
      return true;
    ++next;
  }
  return false;
}

run_state find_run(std::span<const float> logprobs, std::uint64_t before,
                   const filter_rules::certain_run &rule) noexcept {
  // A window that begins after the token `last` ends `window` tokens later, and a token that is not
  // certain anywhere in it moves its beginning behind that token: so it is read from its end, and
  // most tokens are never read. Tokens of the run before have negative places.
  const auto n = static_cast<std::int64_t>(logprobs.size());
  const auto window = static_cast<std::int64_t>(rule.window);
  std::int64_t last = -1 - static_cast<std::int64_t>(before);
  const auto back_from = [&](std::int64_t at) {
    const auto first = last < 0 ? 0 : last + 1;
    while (at >= first && logprobs[static_cast<std::size_t>(at)] > rule.logprob_above)
      --at;
    return at < first ? last : at;
  };
  while (last + window < n) {
    const auto uncertain = back_from(last + window);
    if (uncertain == last)
      return {.found = true, .tail = 0};
    last = uncertain;
  }
  return {.found = false, .tail = static_cast<std::uint64_t>(n - 1 - back_from(n - 1))};
}

std::uint8_t filter_trace(std::span<const node_view> nodes, const filter_rules &rules) {
  unsigned found = 0;
  if (rules.gibberish)
    for (const auto &node : nodes)
      if (has_rare_token(node, *rules.gibberish)) {
        found |= gibberish_bit;
        break;
      }
  if (rules.repetition && has_repetition(nodes, *rules.repetition))
    found |= repetition_bit;
  return static_cast<std::uint8_t>(found);
}

std::uint8_t dropping_filters(const filter_config &config) noexcept {
  const auto bit = [](filter_action action, std::uint8_t which) {
    return action == filter_action::drop ? unsigned{which} : 0U;
  };
  return static_cast<std::uint8_t>(bit(config.gibberish.action, gibberish_bit) |
                                   bit(config.repetition.action, repetition_bit));
}

} // namespace millrace
