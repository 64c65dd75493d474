// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/env_config.hpp"

#include <cmath>

#include "actors/scorer/algorithm.hpp"

namespace millrace {

namespace {

void check_range(std::vector<error> &errors, std::string_view section, std::string_view key,
                 double value, double smallest, double largest) {
  if (!(value >= smallest && value <= largest)) // false for NaN too
    errors.push_back({errc::bad_config, fmt::format("{}.{} = {}: it must be from {} to {}", section,
                                                    key, value, smallest, largest)});
}

void check_gate(std::vector<error> &errors, std::string_view section, const gate_config &gate) {
  if (gate.reject_min.has_value() != gate.reject_max.has_value()) {
    const auto *const set = gate.reject_min ? "reject_min" : "reject_max";
    const auto *const missing = gate.reject_min ? "reject_max" : "reject_min";
    errors.push_back(
        {errc::bad_config, fmt::format("{0}.gate.{1} is set and {0}.gate.{2} is not: set both",
                                       section, set, missing)});
    return;
  }
  if (gate.reject_min && !(*gate.reject_min <= *gate.reject_max)) // NaN is refused here too
    errors.push_back(
        {errc::bad_config,
         fmt::format("{0}.gate.reject_min = {1} is not at most {0}.gate.reject_max = {2}", section,
                     *gate.reject_min, *gate.reject_max)});
}

} // namespace

std::vector<error> env_config::validate(std::string_view section) const {
  std::vector<error> errors;
  constexpr double most_episodes = 65'535;
  constexpr double most_weight = 1e6;
  constexpr double coldest = 1e-6;
  constexpr double hottest = 1e4;
  check_range(errors, section, "group_size", group_size, 0, most_episodes);
  if (find_algorithm(algorithm) == nullptr)
    errors.push_back(
        {errc::bad_config, fmt::format("{}.algorithm = \"{}\" is not known: use one of {}", section,
                                       algorithm, algorithm_names())});
  check_gate(errors, section, gate);
  check_range(errors, section, "length_penalty.num_output_tokens_weight",
              penalty.num_output_tokens_weight, 0, most_weight);
  check_range(errors, section, "length_penalty.num_input_tokens_weight",
              penalty.num_input_tokens_weight, 0, most_weight);
  check_range(errors, section, "length_penalty.num_turns_weight", penalty.num_turns_weight, 0,
              most_weight);
  check_range(errors, section, "temperature", temperature, coldest, hottest);
  return errors;
}

} // namespace millrace
