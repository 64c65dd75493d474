// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/split.hpp"

#include <algorithm>
#include <queue>
#include <utility>

#include "actors/planner/cost.hpp"

namespace millrace {

namespace {

cost_t cost_of(const open_bin &bin, const cost_config &cost) {
  cost_t sum = 0;
  for (const auto &p : bin.pieces)
    sum += cost_of(p.tokens, cost);
  return sum;
}

/// Deals the pieces of `bin` out: it keeps the left side, the right side is returned.
open_bin deal(open_bin &bin, const cost_config &cost) {
  auto pieces = std::exchange(bin, {}).pieces;
  // The cost grows with the length, strictly: the order by length is the order by cost.
  std::stable_sort(
      pieces.begin(), pieces.end(),
      [](const planned_piece &a, const planned_piece &b) { return a.tokens > b.tokens; });
  open_bin right;
  cost_t left_load = 0;
  cost_t right_load = 0;
  for (const auto &p : pieces) {
    const bool to_left = left_load <= right_load;
    auto &side = to_left ? bin : right;
    side.pieces.push_back(p);
    side.tokens += p.tokens;
    (to_left ? left_load : right_load) += cost_of(p.tokens, cost);
  }
  return right;
}

} // namespace

void split(std::vector<open_bin> &bins, std::size_t ranks, const cost_config &cost) {
  if (ranks == 1)
    return;
  const auto target = std::max((bins.size() + ranks - 1) / ranks * ranks, ranks);
  std::priority_queue<std::pair<cost_t, std::size_t>> by_cost;
  const auto offer = [&](std::size_t i) {
    if (bins[i].pieces.size() >= 2 && !bins[i].images)
      by_cost.emplace(cost_of(bins[i], cost), i);
  };
  for (std::size_t i = 0; i < bins.size(); ++i)
    offer(i);
  while (bins.size() < target && !by_cost.empty()) {
    const auto heaviest = by_cost.top().second;
    by_cost.pop();
    bins.push_back(deal(bins[heaviest], cost));
    offer(heaviest);
    offer(bins.size() - 1);
  }
}

} // namespace millrace
