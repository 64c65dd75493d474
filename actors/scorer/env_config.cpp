// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/env_config.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "actors/scorer/algorithm.hpp"
#include "transport/http_url.hpp"

namespace millrace {

namespace {

std::string_view name_of(action_loss loss) {
  constexpr std::array<std::string_view, 4> names{"auto", "rl", "ce", "ref_kl"};
  return names[static_cast<std::size_t>(loss)];
}

/// What only some algorithms read.
struct option {
  std::string_view key;
  std::string_view owner;
  std::string_view other_owner; ///< or none
  bool (*same)(const env_config &, const env_config &);
};

#define MILLRACE_SAME(member)                                                                      \
  [](const env_config &a, const env_config &b) { return a.member == b.member; }

constexpr std::array options{
    option{"length_penalty", "grpo", "echo", MILLRACE_SAME(penalty)},
    option{"length_weighted_baseline", "grpo", "echo", MILLRACE_SAME(length_weighted_baseline)},
    option{"loss_aggregation", "grpo", "echo", MILLRACE_SAME(aggregation)},
    option{"episode_agents", "hierarchical_grpo", "", MILLRACE_SAME(episode_agents)},
    option{"decay", "rae", "", MILLRACE_SAME(decay)},
    option{"echo.roles", "echo", "", MILLRACE_SAME(echo.roles)},
    option{"teacher.endpoint", "opd", "opsd", MILLRACE_SAME(teacher.endpoint)},
    option{"teacher.model", "opd", "opsd", MILLRACE_SAME(teacher.model)},
    option{"reference", "opd", "opsd", MILLRACE_SAME(reference)},
};

#undef MILLRACE_SAME

/// Collects what is wrong with one environment.
class checker {
public:
  checker(std::string_view section, const env_config &config)
      : section_(section), config_(config) {}

  template <class... Args>
  void refuse(std::string_view key, fmt::format_string<Args...> format, Args &&...args) {
    errors_.push_back(
        {errc::bad_config,
         fmt::format("{}.{}{}", section_, key, fmt::format(format, std::forward<Args>(args)...))});
  }

  void range(std::string_view key, double value, double smallest, double largest) {
    if (!(value >= smallest && value <= largest)) // false for NaN too
      refuse(key, " = {}: it must be from {} to {}", value, smallest, largest);
  }

  void ranges() {
    constexpr double most_episodes = 65'535;
    constexpr double most_weight = 1e6;
    constexpr double coldest = 1e-6;
    constexpr double hottest = 1e4;
    const auto &penalty = config_.penalty;
    range("group_size", config_.group_size, 0, most_episodes);
    range("length_penalty.num_output_tokens_weight", penalty.num_output_tokens_weight, 0,
          most_weight);
    range("length_penalty.num_input_tokens_weight", penalty.num_input_tokens_weight, 0,
          most_weight);
    range("length_penalty.num_turns_weight", penalty.num_turns_weight, 0, most_weight);
    range("temperature", config_.temperature, coldest, hottest);
    for (const auto &[role, alpha] : config_.echo.roles)
      range("echo.roles." + role, alpha, 0, most_weight);
    if (!(config_.decay >= 0 && config_.decay < 1))
      refuse("decay", " = {}: it must be at least 0 and below 1", config_.decay);
  }

  void reference() {
    constexpr double most_requests = 1024;
    constexpr double shortest = 0.01;
    constexpr double longest = 86'400;
    constexpr double most_retries = 1000;
    range("reference.concurrency", config_.reference.concurrency, 1, most_requests);
    range("reference.timeout", config_.reference.timeout_s, shortest, longest);
    range("reference.retries", config_.reference.retries, 0, most_retries);
    if (const auto &endpoint = config_.teacher.endpoint; !endpoint.empty())
      if (const auto url = http_url::parse(endpoint); !url)
        refuse("teacher.endpoint", " = {}", url.error().message);
  }

  void gate() {
    const auto &bounds = config_.gate;
    if (bounds.reject_min.has_value() != bounds.reject_max.has_value()) {
      const auto *const set = bounds.reject_min ? "reject_min" : "reject_max";
      const auto *const missing = bounds.reject_min ? "reject_max" : "reject_min";
      refuse("gate.", "{} is set and {}.gate.{} is not: set both", set, section_, missing);
    } else if (bounds.reject_min && !(*bounds.reject_min <= *bounds.reject_max)) { // NaN too
      refuse("gate.reject_min", " = {} is not at most {}.gate.reject_max = {}", *bounds.reject_min,
             section_, *bounds.reject_max);
    }
  }

  /// What an algorithm needs, and what contradicts it.
  void demands(const algorithm &known) {
    if (known.group_relative && config_.group_size == 1)
      refuse("group_size",
             " = 1: {} compares the episodes of a group, and one alone has nothing to "
             "be compared with: set 2 or more",
             known.name);
    if (known.loss != action_loss::rl && config_.loss() != known.loss)
      refuse("action_loss_type",
             " = \"{}\" contradicts algorithm {}, which trains with {}: leave it out",
             name_of(config_.loss()), known.name, name_of(known.loss));
    if (known.needs == score_needs::reference && config_.teacher.endpoint.empty())
      refuse("teacher.endpoint", " is not set: {} needs a model server that scores its tokens",
             known.name);
    if (known.name == "sft" && config_.sampler != sampler_kind::frozen)
      refuse("sampler", " is not \"frozen\": sft trains on what others sampled, not on the live "
                        "policy's own tokens");
    if (known.name == "echo" && none_above_zero())
      refuse("echo.roles", " gives no role a weight: echo needs one, {}.echo.roles.tool = 0.1",
             section_);
  }

  /// An option that is neither as it is without any config nor as `base` has it was set here.
  void foreign_options(const algorithm &known, const env_config &base) {
    const env_config unset;
    for (const auto &each : options) {
      const bool owned = known.name == each.owner || known.name == each.other_owner;
      if (!owned && !each.same(config_, unset) && !each.same(config_, base))
        refuse(each.key, " is an option of {}{}{}, and {}.algorithm is {}: leave one of them out",
               each.owner, each.other_owner.empty() ? "" : " and ", each.other_owner, section_,
               known.name);
    }
  }

  std::vector<error> take() { return std::move(errors_); }

private:
  bool none_above_zero() const {
    const auto &roles = config_.echo.roles;
    return std::none_of(roles.begin(), roles.end(),
                        [](const auto &entry) { return entry.second > 0; });
  }

  std::string_view section_;
  const env_config &config_;
  std::vector<error> errors_;
};

} // namespace

action_loss env_config::loss() const noexcept {
  if (action_loss_type != action_loss::automatic)
    return action_loss_type;
  const auto *known = find_algorithm(algorithm);
  return known == nullptr ? action_loss::rl : known->loss;
}

std::vector<error> env_config::validate(std::string_view section, const env_config &base) const {
  checker check(section, *this);
  check.ranges();
  check.reference();
  check.gate();
  if (const auto *known = find_algorithm(algorithm); known == nullptr) {
    check.refuse("algorithm", " = \"{}\" is not known: use one of {}", algorithm,
                 algorithm_names());
  } else {
    check.demands(*known);
    check.foreign_options(*known, base);
  }
  return check.take();
}

} // namespace millrace
