// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/plan_config.hpp"

#include <utility>

#include "schema/limits.hpp"

namespace millrace {

namespace {

constexpr std::uint32_t most_ranks = 65'536;

void check_lengths(const plan_config &config, std::vector<error> &errors) {
  const auto [seq_len, pad] = std::pair{config.seq_len, config.pad_to_multiple_of};
  if (seq_len < 1 || seq_len > limits::micro_batch_tokens)
    errors.push_back({errc::bad_config, fmt::format("seq_len = {}: want 1 to {}", seq_len,
                                                    limits::micro_batch_tokens)});
  if (pad < 1)
    errors.push_back(
        {errc::bad_config, fmt::format("pad_to_multiple_of = {}: want 1 to seq_len", pad)});
  else if (seq_len % pad != 0)
    errors.push_back(
        {errc::bad_config,
         fmt::format("seq_len = {} is not a multiple of pad_to_multiple_of = {}: "
                     "padding would pass seq_len; set seq_len to {} or {}",
                     seq_len, pad, seq_len / pad * pad, (std::uint64_t{seq_len} / pad + 1) * pad)});
}

void check_cost(const plan_config &config, std::vector<error> &errors) {
  const auto &cost = config.cost;
  if (cost.linear < 0)
    errors.push_back(
        {errc::bad_config, fmt::format("cost.linear = {}: want 0 or more", cost.linear)});
  if (cost.quadratic < 0)
    errors.push_back(
        {errc::bad_config, fmt::format("cost.quadratic = {}: want 0 or more", cost.quadratic)});
  if (cost.linear == 0 && cost.quadratic == 0)
    errors.push_back({errc::bad_config, "cost.linear and cost.quadratic are both 0: without a cost "
                                        "nothing can be balanced; set one of them"});
}

} // namespace

std::vector<error> plan_config::validate() const {
  std::vector<error> errors;
  check_lengths(*this, errors);
  if (ranks < 1 || ranks > most_ranks)
    errors.push_back(
        {errc::bad_config, fmt::format("trainer.ranks = {}: want 1 to {}", ranks, most_ranks)});
  check_cost(*this, errors);
  return errors;
}

} // namespace millrace
