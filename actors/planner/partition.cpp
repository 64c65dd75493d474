// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/partition.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "actors/planner/swap_refinement.hpp"

namespace millrace {

namespace {

/// Items that will share a part. They form a list through `next`, so that joining is O(1). Sets are
/// disjoint, so their first items alone decide between equal totals.
struct item_set {
  cost_t total;
  std::size_t first;
  std::size_t last;
};

bool before(const item_set &a, const item_set &b) {
  return a.total != b.total ? a.total > b.total : a.first > b.first;
}

/// k sets, largest first.
using state = std::vector<item_set>;

struct comes_later {
  bool operator()(const state &a, const state &b) const {
    const auto spread_a = a.front().total - a.back().total;
    const auto spread_b = b.front().total - b.back().total;
    return spread_a != spread_b ? spread_a < spread_b : before(b.front(), a.front());
  }
};

/// Moves the first state out of a heap.
state take(std::vector<state> &heap) {
  std::pop_heap(heap.begin(), heap.end(), comes_later{});
  auto out = std::move(heap.back());
  heap.pop_back();
  return out;
}

std::vector<state> first_states(std::span<const cost_t> weights, std::size_t k) {
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return weights[a] != weights[b] ? weights[a] < weights[b] : a < b;
  });
  std::vector<state> states(weights.size() / k);
  for (std::size_t s = 0; s < states.size(); ++s)
    for (std::size_t i = (s + 1) * k; i-- > s * k;) // descending: largest first
      states[s].push_back({weights[order[i]], order[i], order[i]});
  return states;
}

status check(std::span<const cost_t> weights, std::size_t k) {
  if (k == 0 || weights.size() % k != 0)
    return fail(errc::bad_argument, "{} weights do not divide into {} equal parts", weights.size(),
                k);
  cost_t total = 0;
  for (auto w : weights) {
    if (w > most_cost - total)
      return fail(errc::too_large,
                  "the costs of {} micro batches sum to 2^126 or more; scale cost.linear and "
                  "cost.quadratic down",
                  weights.size());
    total += w;
  }
  return {};
}

} // namespace

result<partitioning> difference(std::span<const cost_t> weights, std::size_t k) {
  MILLRACE_TRY(check(weights, k));
  partitioning out(k);
  if (weights.empty())
    return out;

  constexpr auto end = static_cast<std::size_t>(-1);
  std::vector<std::size_t> next(weights.size(), end);
  auto heap = first_states(weights, k);
  std::make_heap(heap.begin(), heap.end(), comes_later{});
  while (heap.size() > 1) {
    auto a = take(heap);
    const auto b = take(heap);
    for (std::size_t i = 0; i < k; ++i) {
      const auto &other = b[k - 1 - i];
      next[a[i].last] = other.first;
      a[i].total += other.total;
      a[i].last = other.last;
    }
    std::sort(a.begin(), a.end(), before);
    heap.push_back(std::move(a));
    std::push_heap(heap.begin(), heap.end(), comes_later{});
  }
  for (std::size_t r = 0; r < k; ++r) {
    for (auto i = heap.front()[r].first; i != end; i = next[i])
      out[r].push_back(i);
    std::sort(out[r].begin(), out[r].end());
  }
  return out;
}

result<partitioning> partition(std::span<const cost_t> weights, std::size_t k) {
  auto out = difference(weights, k);
  if (out)
    refine(weights, *out);
  return out;
}

} // namespace millrace
