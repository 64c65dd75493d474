// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/live_step.hpp"

#include <algorithm>
#include <utility>

#include "actors/planner/step.hpp"

namespace millrace {

bool bin_order::is_located() const {
  return std::ranges::all_of(order.groups, [](const auto &one) { return bool{one.assembler}; });
}

bool waits_for_bytes(const live_step &step) {
  return std::ranges::any_of(step.bins, [](const auto &bin) { return !bin.second.is_located(); });
}

void add_bins(live_step &step, const step_bins &bins, const std::vector<peer> &feeders,
              const planner_claim &claim) {
  std::vector<const ready_group *> groups;
  for (const auto &group : step.groups)
    groups.push_back(&group.scored);
  const auto number = step.report.step;
  for (std::uint32_t rank = 0; rank < bins.plan.ranks.size(); ++rank)
    for (std::uint32_t index = 0; index < bins.plan.ranks[rank].size(); ++index) {
      auto encoded = encode_bin(bins, groups, number, rank, index);
      step.plan.push_back({rank, index, {}, encoded.source_bytes, encoded.plan});
      pack_bin job{std::move(encoded.plan), {}, feeders[rank], encoded.source_bytes, claim};
      for (auto g : encoded.groups)
        job.groups.push_back({step.groups[g].ref, step.groups[g].scored.annotations->bytes(),
                              step.groups[g].assembler});
      step.bins.emplace(bin_ref{number, rank, index, claim}, bin_order{std::move(job), {}});
    }
}

namespace {

/// The group of a record that a plan speaks of. Errors: bad_value if there is none.
result<std::size_t> find_group(const log_commit &record, const wire::GroupRef &ref) {
  const auto key = key_of(*ref.key());
  const auto found = std::ranges::find_if(record.groups, [&](const log_group &one) {
    return one.ordinal == ref.ordinal() && one.key == key;
  });
  if (found == record.groups.end())
    return fail(errc::bad_value,
                "the record of step {} plans with group {}, which it does not list", record.step,
                key.text());
  return static_cast<std::size_t>(found - record.groups.begin());
}

} // namespace

status add_bins_again(live_step &step, const log_commit &record, const std::vector<peer> &feeders,
                      const planner_claim &claim) {
  for (const auto &bin : record.bins) {
    if (!step.lacking.contains(bin.rank))
      continue;
    auto plan = parse<wire::BinPlan>(bin.plan);
    if (!plan)
      return tl::unexpected(std::move(plan).error());
    pack_bin job{bin.plan, {}, feeders[bin.rank], bin.source_bytes, claim};
    if ((*plan)->groups() != nullptr)
      for (const auto *ref : *(*plan)->groups()) {
        const auto at = find_group(record, *ref);
        if (!at)
          return tl::unexpected(at.error());
        const group_ref group{record.groups[*at].ordinal, record.groups[*at].source};
        const auto known = step.places.find(group);
        job.groups.push_back(
            {group, record.annotations[*at], known == step.places.end() ? peer() : known->second});
      }
    step.bins.emplace(bin_ref{record.step, bin.rank, bin.index, claim},
                      bin_order{std::move(job), {}});
  }
  return {};
}

std::vector<const bin_order *> locate(live_step &step, group_ref ref, const peer &assembler) {
  std::vector<const bin_order *> again;
  for (auto &[bin, order] : step.bins) {
    bool moved = false;
    for (auto &group : order.order.groups)
      if (group.group == ref && group.assembler != assembler) {
        group.assembler = assembler;
        moved = true;
      }
    if (moved && order.packer)
      again.push_back(&order);
  }
  return again;
}

log_commit commit_record(const live_step &step) {
  log_commit out;
  out.step = step.report.step;
  out.digest = step.report.digest;
  out.bins = step.plan;
  for (auto &bin : out.bins)
    bin.digest = step.staged.at(bin.rank).at(bin.index).digest;
  for (const auto &group : step.groups) {
    auto entry = group_entry(*group.scored.header, &**group.scored.annotations,
                             group.scored.samples, group_end::settled);
    entry.ordinal = group.ref.ordinal;
    entry.source = group.ref.source;
    out.groups.push_back(std::move(entry));
    out.annotations.push_back(group.scored.annotations->bytes());
  }
  out.traces = step.report.traces;
  out.samples = step.report.samples;
  out.tokens = step.report.tokens;
  out.padding = step.report.padding;
  out.dummies = step.report.dummies;
  out.wire_bytes = step.report.wire_bytes;
  out.staleness = step.report.staleness;
  out.kept_lengths = step.report.kept_lengths;
  return out;
}

} // namespace millrace
