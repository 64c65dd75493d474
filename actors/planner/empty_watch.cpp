// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/empty_watch.hpp"

#include <algorithm>
#include <vector>

namespace millrace {

void empty_watch::add(const wire::GroupHeader &header, const log_group &entry) {
  if (header.episodes() != nullptr)
    for (const auto *episode : *header.episodes()) {
      const std::uint64_t traces = episode->traces() == nullptr ? 0 : episode->traces()->size();
      if (batch_.traces != 0)
        empty_ += std::max<std::uint64_t>(traces, 1);
      else
        empty_ += episode->tokens() == 0 ? seq_len_ : episode->tokens();
    }
  for (auto state : entry.states)
    ++states_.at(state);
}

void empty_watch::cut(std::uint64_t step) noexcept {
  empty_ = before_ = 0;
  last_step_ = step;
  states_ = {};
}

std::optional<error> empty_watch::verdict() const {
  const auto target = batch_.traces != 0 ? batch_.traces : batch_.tokens;
  if (most_batches_ == 0 || empty_ / target < most_batches_)
    return std::nullopt;
  std::vector<std::size_t> order;
  for (std::size_t state = 0; state < states_.size(); ++state)
    if (states_[state] > 0)
      order.push_back(state);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [this](std::size_t state) { return states_[state]; });
  std::string counts;
  for (auto state : order)
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ",
                          name_of(static_cast<episode_state>(state)), states_[state]);
  return error{errc::bad_value,
               fmt::format("nothing to train in {} {}, {} batches' worth "
                           "(planner.max_empty_batches); episodes since {}: {}",
                           empty_, batch_.traces != 0 ? "traces" : "tokens", empty_ / target,
                           last_step_ == 0 ? "the start" : fmt::format("step {}", last_step_),
                           counts)};
}

} // namespace millrace
