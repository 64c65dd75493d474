// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/swap_refinement.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

namespace millrace {

namespace {

/// (largest load, largest minus smallest load): smaller is better.
using score = std::pair<cost_t, cost_t>;

/// One part by value. What an exchange does to the score depends on weights alone, so the search
/// looks at sorted weights; positions matter only among exchanges of equal score.
struct side {
  cost_t load = 0;
  std::vector<cost_t> sorted; ///< weights of its items, ascending
};

/// Largest and smallest load of the parts that an exchange leaves alone.
struct bystanders {
  cost_t largest = 0;
  cost_t smallest = ~cost_t{0};
};

/// The score if `left` gives an item of weight `out` for one of weight `in`.
score score_of(const side &left, const side &right, cost_t out, cost_t in, const bystanders &rest) {
  const auto l = left.load - out + in;
  const auto r = right.load - in + out;
  const auto largest = std::max({l, r, rest.largest});
  return {largest, largest - std::min({l, r, rest.smallest})};
}

/// The smallest score when `left` gives `out`. The score never falls as the new loads move apart,
/// so the best partners are those around equal loads. Precondition: `right` has items.
/// @param at where the search stood for a smaller `out`; equal loads lie at or after it.
score best_for(const side &left, const side &right, cost_t out, const bystanders &rest,
               std::size_t &at) {
  const auto &w = right.sorted;
  while (at < w.size() && left.load + 2 * w[at] < right.load + 2 * out)
    ++at;
  if (at == w.size())
    return score_of(left, right, out, w[at - 1], rest);
  const auto above = score_of(left, right, out, w[at], rest);
  return at == 0 ? above : std::min(above, score_of(left, right, out, w[at - 1], rest));
}

score best_of(const side &left, const side &right, const bystanders &rest) {
  std::size_t at = 0;
  score best{~cost_t{0}, ~cost_t{0}};
  for (auto out : left.sorted)
    best = std::min(best, best_for(left, right, out, rest, at));
  return best;
}

class refiner {
public:
  refiner(std::span<const cost_t> weights, partitioning &in)
      : weights_(weights), parts_(in), sides_(in.size()), by_load_(in.size()) {
    for (std::size_t p = 0; p < in.size(); ++p) {
      for (auto i : in[p]) {
        sides_[p].load += weights[i];
        sides_[p].sorted.push_back(weights[i]);
      }
      std::sort(sides_[p].sorted.begin(), sides_[p].sorted.end());
    }
    std::iota(by_load_.begin(), by_load_.end(), std::size_t{0});
  }

  /// Makes the best exchange; false if none is better than none.
  bool improve() {
    std::sort(by_load_.begin(), by_load_.end(),
              [this](std::size_t a, std::size_t b) { return sides_[a].load < sides_[b].load; });
    const auto found = best_pair();
    if (found)
      exchange_in(*found);
    return found.has_value();
  }

private:
  struct pair {
    std::size_t left, right;
    score best;
  };

  cost_t largest() const { return sides_[by_load_.back()].load; }
  cost_t smallest() const { return sides_[by_load_.front()].load; }

  bystanders others(std::size_t left, std::size_t right) const {
    const auto is_other = [=](std::size_t p) { return p != left && p != right; };
    bystanders out;
    if (auto low = std::find_if(by_load_.begin(), by_load_.end(), is_other); low != by_load_.end())
      out = {sides_[*std::find_if(by_load_.rbegin(), by_load_.rend(), is_other)].load,
             sides_[*low].load};
    return out;
  }

  std::optional<pair> best_pair() const {
    std::optional<pair> found;
    score bar{largest(), largest() - smallest()};
    for (std::size_t l = 0; l < sides_.size(); ++l)
      for (std::size_t r = l + 1; r < sides_.size(); ++r) {
        const auto rest = others(l, r);
        // With a largest and a smallest load outside, no exchange of these two can help.
        if (rest.largest == largest() && rest.smallest == smallest())
          continue;
        if (const auto best = best_of(sides_[l], sides_[r], rest); best < bar) {
          bar = best;
          found = {l, r, best};
        }
      }
    return found;
  }

  /// The first exchange of this score, by position in left, then in right.
  void exchange_in(const pair &found) {
    auto &left = parts_[found.left];
    auto &right = parts_[found.right];
    const auto &l = sides_[found.left];
    const auto &r = sides_[found.right];
    const auto rest = others(found.left, found.right);
    for (auto &a : left) {
      auto at = first_partner(l, r, weights_[a]);
      if (best_for(l, r, weights_[a], rest, at) != found.best)
        continue;
      const auto b = std::find_if(right.begin(), right.end(), [&](std::size_t i) {
        return score_of(l, r, weights_[a], weights_[i], rest) == found.best;
      });
      move_weight(found.left, found.right, weights_[a]);
      move_weight(found.right, found.left, weights_[*b]);
      std::swap(a, *b);
      return;
    }
  }

  static std::size_t first_partner(const side &left, const side &right, cost_t out) {
    const auto at = std::partition_point(right.sorted.begin(), right.sorted.end(), [&](cost_t in) {
      return left.load + 2 * in < right.load + 2 * out;
    });
    return static_cast<std::size_t>(at - right.sorted.begin());
  }

  void move_weight(std::size_t from, std::size_t to, cost_t weight) {
    auto &source = sides_[from].sorted;
    auto &target = sides_[to].sorted;
    source.erase(std::lower_bound(source.begin(), source.end(), weight));
    target.insert(std::upper_bound(target.begin(), target.end(), weight), weight);
    sides_[from].load -= weight;
    sides_[to].load += weight;
  }

  std::span<const cost_t> weights_;
  partitioning &parts_;
  std::vector<side> sides_;
  std::vector<std::size_t> by_load_; ///< parts, smallest load first
};

} // namespace

void refine(std::span<const cost_t> weights, partitioning &in) {
  if (weights.empty())
    return;
  refiner work(weights, in);
  while (work.improve()) {
  }
}

} // namespace millrace
