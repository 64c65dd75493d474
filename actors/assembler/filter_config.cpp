// SPDX-License-Identifier: Apache-2.0
#include "actors/assembler/filter_config.hpp"

namespace millrace {

namespace {

constexpr std::uint32_t most_int32 = 2'147'483'647;

void check_range(std::vector<error> &errors, std::string_view section, std::string_view key,
                 double value, double smallest, double largest) {
  if (!(value >= smallest && value <= largest)) // false for NaN too
    errors.push_back({errc::bad_config, fmt::format("{}.filter.{} = {}: it must be from {} to {}",
                                                    section, key, value, smallest, largest)});
}

void check_vocabulary(std::vector<error> &errors, std::string_view section,
                      const gibberish_filter &filter, std::uint32_t vocab_size) {
  if (vocab_size == most_int32)
    errors.push_back({errc::bad_config,
                      fmt::format("{}.filter.gibberish measures against the model's vocabulary: "
                                  "set vocab_size",
                                  section)});
  else if (filter.token_id_threshold >= vocab_size)
    errors.push_back(
        {errc::bad_config,
         fmt::format("{}.filter.gibberish.token_id_threshold = {} is not below vocab_size = {}: no "
                     "token has an id above it",
                     section, filter.token_id_threshold, vocab_size)});
}

} // namespace

std::vector<error> filter_config::validate(std::string_view section,
                                           std::uint32_t vocab_size) const {
  std::vector<error> errors;
  constexpr double most_nats = 100;
  check_range(errors, section, "gibberish.token_id_threshold", gibberish.token_id_threshold, 0,
              most_int32);
  check_range(errors, section, "gibberish.logprob_offset", gibberish.logprob_offset, -most_nats,
              most_nats);
  check_range(errors, section, "repetition.window", repetition.window, 1, most_int32);
  check_range(errors, section, "repetition.prob_threshold", repetition.prob_threshold, 0, 1);
  if (gibberish.action != filter_action::off)
    check_vocabulary(errors, section, gibberish, vocab_size);
  return errors;
}

} // namespace millrace
