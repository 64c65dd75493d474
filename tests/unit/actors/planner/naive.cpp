// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/actors/planner/naive.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace millrace::naive {

namespace {

using set = std::pair<cost_t, std::vector<std::size_t>>; // compares by total, then by items
using state = std::vector<set>;

bool comes_first(const state &a, const state &b) {
  const auto spread = [](const state &s) { return s.front().first - s.back().first; };
  return std::pair(spread(a), a.front()) > std::pair(spread(b), b.front());
}

std::pair<cost_t, cost_t> score(std::span<const cost_t> weights, const partitioning &in) {
  std::vector<cost_t> loads;
  for (const auto &part : in)
    loads.push_back(std::accumulate(part.begin(), part.end(), cost_t{0},
                                    [&](cost_t sum, std::size_t i) { return sum + weights[i]; }));
  const auto [low, high] = std::minmax_element(loads.begin(), loads.end());
  return {*high, *high - *low};
}

struct bin {
  std::vector<planned_piece> pieces;
};

std::uint64_t total(const bin &b) {
  std::uint64_t sum = 0;
  for (const auto &p : b.pieces)
    sum += p.tokens;
  return sum;
}

const planned_piece *image_piece(const bin &b) {
  for (const auto &p : b.pieces)
    if (p.images > 0)
      return &p;
  return nullptr;
}

cost_t cost(const std::vector<std::uint64_t> &lengths, const cost_config &c) {
  cost_t n1 = 0;
  cost_t n2 = 0;
  for (cost_t n : lengths) {
    n1 += n;
    n2 += n * n;
  }
  return static_cast<cost_t>(c.linear) * n1 + static_cast<cost_t>(c.quadratic) * n2;
}

std::vector<std::uint64_t> lengths(const std::vector<planned_piece> &pieces) {
  std::vector<std::uint64_t> out;
  for (const auto &p : pieces)
    out.push_back(p.tokens);
  return out;
}

bool accepts(std::span<const sample_shape> samples, const bin &b, const planned_piece &p,
             const plan_config &config) {
  if (total(b) + p.tokens > config.seq_len)
    return false;
  if (samples[p.sample].experts != samples[b.pieces.front().sample].experts)
    return false;
  const auto *other = image_piece(b);
  return other == nullptr || p.images == 0 ||
         samples[other->sample].images->tensors == samples[p.sample].images->tensors;
}

void split(std::vector<bin> &bins, const plan_config &config) {
  const auto target =
      std::max<std::size_t>((bins.size() + config.ranks - 1) / config.ranks, 1) * config.ranks;
  while (bins.size() < target) {
    std::optional<std::pair<cost_t, std::size_t>> heaviest;
    for (std::size_t i = 0; i < bins.size(); ++i)
      if (bins[i].pieces.size() >= 2 && image_piece(bins[i]) == nullptr)
        heaviest = std::max(
            heaviest, std::optional(std::pair(cost(lengths(bins[i].pieces), config.cost), i)));
    if (!heaviest)
      return;
    auto pieces = bins[heaviest->second].pieces;
    std::stable_sort(pieces.begin(), pieces.end(),
                     [&](const planned_piece &a, const planned_piece &b) {
                       return cost({a.tokens}, config.cost) > cost({b.tokens}, config.cost);
                     });
    bin left;
    bin right;
    for (const auto &p : pieces)
      (cost(lengths(left.pieces), config.cost) <= cost(lengths(right.pieces), config.cost) ? left
                                                                                           : right)
          .pieces.push_back(p);
    // Sums of own costs are the cost of the lengths: the cost is additive over sequences.
    bins[heaviest->second] = left;
    bins.push_back(right);
  }
}

} // namespace

partitioning difference(std::span<const cost_t> weights, std::size_t k) {
  std::vector<std::pair<cost_t, std::size_t>> sorted;
  for (std::size_t i = 0; i < weights.size(); ++i)
    sorted.emplace_back(weights[i], i);
  std::sort(sorted.begin(), sorted.end());
  std::vector<state> states;
  for (std::size_t i = 0; i < sorted.size(); i += k) {
    state s;
    for (std::size_t j = i; j < i + k; ++j)
      s.emplace_back(sorted[j].first, std::vector{sorted[j].second});
    std::sort(s.rbegin(), s.rend());
    states.push_back(s);
  }
  while (states.size() >= 2) {
    std::sort(states.begin(), states.end(), comes_first);
    auto a = states[0];
    const auto b = states[1];
    for (std::size_t i = 0; i < k; ++i) {
      const auto &[sum, items] = b[k - 1 - i];
      a[i].first += sum;
      a[i].second.insert(a[i].second.end(), items.begin(), items.end());
    }
    std::sort(a.rbegin(), a.rend());
    states.erase(states.begin(), states.begin() + 2);
    states.push_back(a);
  }
  partitioning out(k);
  for (std::size_t r = 0; r < k && !states.empty(); ++r) {
    out[r] = states[0][r].second;
    std::sort(out[r].begin(), out[r].end());
  }
  return out;
}

partitioning refine(std::span<const cost_t> weights, partitioning in) {
  for (;;) {
    auto best = score(weights, in);
    auto best_parts = in;
    for (std::size_t l = 0; l < in.size(); ++l)
      for (std::size_t r = l + 1; r < in.size(); ++r)
        for (std::size_t i = 0; i < in[l].size(); ++i)
          for (std::size_t j = 0; j < in[r].size(); ++j) {
            auto tried = in;
            std::swap(tried[l][i], tried[r][j]);
            if (const auto s = score(weights, tried); s < best) {
              best = s;
              best_parts = tried;
            }
          }
    if (best_parts == in)
      return in;
    in = best_parts;
  }
}

std::optional<planned_piece> cut(const sample_shape &sample, std::uint32_t seq_len) {
  if (sample.tokens == 0)
    return std::nullopt;
  if (!sample.images)
    return planned_piece{
        0, static_cast<std::uint32_t>(std::min<std::uint64_t>(sample.tokens, seq_len)), 0};
  const auto &grid = sample.images->grid_thw;
  if (grid.empty())
    return std::nullopt;
  if (sample.tokens <= seq_len)
    return planned_piece{0, static_cast<std::uint32_t>(sample.tokens),
                         static_cast<std::uint32_t>(grid.size())};
  std::vector<int> type_ids(static_cast<std::size_t>(sample.tokens), 0);
  for (auto [start, count] : sample.images->runs)
    std::fill_n(type_ids.begin() + start, count, 1);
  std::vector<std::uint32_t> places; // of image tokens
  for (std::uint32_t i = 0; i < type_ids.size(); ++i)
    if (type_ids[i] != 0)
      places.push_back(i);
  if (places.empty() || sample.images->patches < places.size())
    return std::nullopt;
  const auto alive = static_cast<std::size_t>(
      std::count_if(places.begin(), places.end(), [=](auto p) { return p < seq_len; }));
  const auto patches_per_token = sample.images->patches / places.size();
  std::uint64_t sum = 0;
  std::uint64_t patches = 0;
  std::uint32_t images = 0;
  while (images < grid.size()) {
    const auto product = grid[images][0] * grid[images][1] * grid[images][2];
    if (sum + product / patches_per_token > alive)
      break;
    sum += product / patches_per_token;
    patches += product;
    ++images;
  }
  if (patches > sample.images->patches)
    return std::nullopt;
  return planned_piece{0, sum == alive ? seq_len : places[static_cast<std::size_t>(sum)], images};
}

step_plan plan_step(std::span<const sample_shape> samples, const plan_config &config) {
  step_plan out;
  out.ranks.resize(config.ranks);
  std::vector<planned_piece> pieces;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    auto kept = cut(samples[i], config.seq_len);
    if (!kept)
      out.rejected.push_back({i, "rejected"});
    else if (kept->tokens == 0)
      out.dropped.push_back(i);
    else
      pieces.push_back({i, kept->tokens, kept->images});
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const auto &a, const auto &b) { return a.tokens > b.tokens; });
  std::vector<bin> bins;
  for (const auto &p : pieces) {
    auto at = std::find_if(bins.begin(), bins.end(),
                           [&](const bin &b) { return accepts(samples, b, p, config); });
    if (at == bins.end())
      at = bins.insert(bins.end(), bin{});
    at->pieces.push_back(p);
  }
  if (config.ranks > 1)
    split(bins, config);
  for (bool images : {true, false}) {
    std::vector<micro_batch_plan> group;
    for (const auto &b : bins)
      if ((image_piece(b) != nullptr) == images) {
        const auto pad = config.pad_to_multiple_of;
        group.push_back(
            {b.pieces, static_cast<std::uint32_t>((pad - total(b) % pad) % pad), false, images});
      }
    for (std::size_t i = group.size(); i % config.ranks != 0; ++i) {
      group.push_back(group[0]);
      group.back().dummy = true;
    }
    std::vector<cost_t> weights;
    for (const auto &g : group) {
      auto n = lengths(g.pieces);
      n.back() += g.padding;
      weights.push_back(cost(n, config.cost));
    }
    const auto balanced = refine(weights, difference(weights, config.ranks));
    for (std::size_t r = 0; r < config.ranks; ++r)
      for (auto i : balanced[r])
        out.ranks[r].push_back(group[i]);
  }
  return out;
}

} // namespace millrace::naive
