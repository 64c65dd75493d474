// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/plan.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "actors/planner/cut.hpp"
#include "actors/planner/first_fit.hpp"
#include "actors/planner/partition.hpp"
#include "actors/planner/split.hpp"

namespace millrace {

namespace {

/// What is left of each sample, longest first; equal lengths keep their order.
std::vector<planned_piece> cut_and_order(std::span<const sample_shape> samples,
                                         std::uint32_t seq_len, step_plan &out) {
  std::vector<planned_piece> pieces;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto left = cut(samples[i], seq_len);
    if (!left)
      out.rejected.push_back({i, left.error().message});
    else if (left->tokens == 0)
      out.dropped.push_back(i);
    else
      pieces.push_back({i, left->tokens, left->images});
  }
  std::stable_sort(
      pieces.begin(), pieces.end(),
      [](const planned_piece &a, const planned_piece &b) { return a.tokens > b.tokens; });
  return pieces;
}

micro_batch_plan pad(open_bin &&bin, std::uint32_t multiple) {
  const auto over = bin.tokens % multiple;
  return {.pieces = std::move(bin.pieces),
          .padding = over == 0 ? 0 : multiple - over,
          .images = bin.images};
}

/// Padding belongs to the last sequence.
cost_t cost_of(const micro_batch_plan &batch, const cost_config &cost) {
  cost_t sum = 0;
  for (const auto &p : batch.pieces)
    sum += cost_of(p.tokens + (&p == &batch.pieces.back() ? batch.padding : 0), cost);
  return sum;
}

void fill_up(std::vector<micro_batch_plan> &group, std::size_t ranks) {
  while (group.size() % ranks != 0) {
    group.push_back(group.front());
    group.back().dummy = true;
  }
}

/// Fills one modality up with dummies and gives every rank as many of it.
status distribute(std::vector<micro_batch_plan> &&group, const cost_config &cost, step_plan &out) {
  fill_up(group, out.ranks.size());
  std::vector<cost_t> weights;
  for (const auto &batch : group)
    weights.push_back(cost_of(batch, cost));
  const auto balanced = partition(weights, out.ranks.size());
  if (!balanced)
    return tl::unexpected(balanced.error());
  for (std::size_t r = 0; r < out.ranks.size(); ++r)
    for (auto i : (*balanced)[r])
      out.ranks[r].push_back(std::move(group[i]));
  return {};
}

status check_batch(const micro_batch_plan &batch, const plan_config &config,
                   std::unordered_set<std::size_t> &seen) {
  std::uint64_t tokens = batch.padding;
  bool images = false;
  for (const auto &p : batch.pieces) {
    tokens += p.tokens;
    images = images || p.images > 0;
    if (p.tokens == 0)
      return fail(errc::conflict, "sample {} with no token", p.sample);
    if (!batch.dummy && !seen.insert(p.sample).second)
      return fail(errc::conflict, "sample {} a second time", p.sample);
  }
  if (batch.pieces.empty())
    return fail(errc::conflict, "no samples");
  if (tokens > config.seq_len || tokens % config.pad_to_multiple_of != 0)
    return fail(errc::conflict, "{} tokens, want at most {} and a multiple of {}", tokens,
                config.seq_len, config.pad_to_multiple_of);
  if (images != batch.images)
    return fail(errc::conflict, "marked as {} but {}", batch.images ? "images" : "text",
                images ? "some sample keeps images" : "no sample keeps an image");
  return {};
}

} // namespace

result<step_plan> plan_step(std::span<const sample_shape> samples, const plan_config &config) {
  if (auto errors = config.validate(); !errors.empty())
    return tl::unexpected(std::move(errors.front()));
  step_plan out;
  out.ranks.resize(config.ranks);
  const auto pieces = cut_and_order(samples, config.seq_len, out);
  auto bins = first_fit(samples, pieces, config.seq_len);
  split(bins, config.ranks, config.cost);
  std::vector<micro_batch_plan> images;
  std::vector<micro_batch_plan> text;
  for (auto &bin : bins) {
    auto &group = bin.images ? images : text;
    group.push_back(pad(std::move(bin), config.pad_to_multiple_of));
  }
  MILLRACE_TRY(distribute(std::move(images), config.cost, out));
  MILLRACE_TRY(distribute(std::move(text), config.cost, out));
  return out;
}

status check_plan(const step_plan &plan, const plan_config &config) {
  if (plan.ranks.size() != config.ranks)
    return fail(errc::conflict, "the plan has {} ranks, trainer.ranks is {}", plan.ranks.size(),
                config.ranks);
  const auto &first = plan.ranks.front();
  std::unordered_set<std::size_t> seen;
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    const auto &batches = plan.ranks[r];
    if (batches.size() != first.size())
      return fail(errc::conflict, "rank {} has {} micro batches, rank 0 has {}", r, batches.size(),
                  first.size());
    for (std::size_t i = 0; i < batches.size(); ++i) {
      if (auto good = check_batch(batches[i], config, seen); !good)
        return with_context(good.error(), fmt::format("rank {}, micro batch {}", r, i));
      if (batches[i].images != first[i].images)
        return fail(errc::conflict, "micro batch {} is {} on rank {} and {} on rank 0", i,
                    batches[i].images ? "images" : "text", r, first[i].images ? "images" : "text");
    }
  }
  return {};
}

} // namespace millrace
