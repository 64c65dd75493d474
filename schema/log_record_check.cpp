// SPDX-License-Identifier: Apache-2.0
#include "schema/log_record_check.hpp"

#include <tuple>

#include "schema/body.hpp"
#include "schema/episode_state.hpp"
#include "schema/limits.hpp"

namespace millrace {

namespace {

void check_text(field_reader &in, std::string_view text, std::string_view field,
                std::size_t most = limits::name_bytes) {
  if (text.size() > most)
    in.refuse(errc::too_large, field, "{} bytes, at most {} are allowed", text.size(), most);
}

void check_number(field_reader &in, std::uint64_t number, std::string_view field) {
  if (number == 0)
    in.refuse(errc::bad_value, field, "0, it counts from 1");
}

void check_state(field_reader &in, std::uint8_t state, std::string_view field) {
  if (state >= episode_state_count)
    in.refuse(errc::bad_value, field, "{} is unknown", state);
}

void check_key(field_reader &in, const group_key &key) {
  check_text(in, key.run, "group.key.run");
  check_text(in, key.env, "group.key.env");
  check_text(in, key.task, "group.key.task");
  check_text(in, key.group, "group.key.group");
}

void check_group(field_reader &in, const log_group &group) {
  check_key(in, group.key);
  in.count(group.states.size(), "group.states", limits::list_entries);
  for (const auto state : group.states)
    check_state(in, state, "group.states");
  in.count(group.samples.size(), "group.samples", episode_state_count);
  for (const auto &row : group.samples)
    check_state(in, row.state, "group.samples.state");
}

void check_groups(field_reader &in, const std::vector<log_group> &groups) {
  in.count(groups.size(), "groups", limits::list_entries);
  for (const auto &group : groups)
    if (in.ok())
      check_group(in, group);
}

void check_plan(field_reader &in, std::uint64_t step, const log_bin &bin) {
  const auto plan = parse<wire::BinPlan>(bin.plan);
  if (!plan)
    in.refuse(plan.error(), "plan");
  else if ((*plan)->step() != step || (*plan)->rank() != bin.rank || (*plan)->index() != bin.index)
    in.refuse(errc::bad_value, "plan",
              "of step {}, rank {}, index {} for step {}, rank {}, index {}", (*plan)->step(),
              (*plan)->rank(), (*plan)->index(), step, bin.rank, bin.index);
}

void check_annotations(field_reader &in, const frame &bytes, const group_key &key) {
  const auto found = parse<wire::GroupAnnotations>(bytes);
  if (!found)
    in.refuse(found.error(), "annotations");
  else if (key_of(*(*found)->key()) != key)
    in.refuse(errc::bad_value, "annotations", "of group {} for group {}",
              key_of(*(*found)->key()).text(), key.text());
}

} // namespace

void check(field_reader &in, const log_open &what) {
  check_text(in, what.run, "run");
  check_number(in, what.epoch, "epoch");
  check_text(in, what.program, "program");
  check_text(in, what.config_digest, "config_digest");
  check_text(in, what.source, "source");
  check_number(in, what.ranks, "ranks");
}

void check(field_reader &in, const log_generation &what) {
  check_number(in, what.generation, "generation");
  check_number(in, what.next, "next");
}

void check(field_reader &in, const log_commit &what) {
  check_number(in, what.step, "step");
  in.count(what.bins.size(), "bins", limits::list_entries);
  in.count(what.staleness.size(), "staleness", limits::list_entries);
  check_groups(in, what.groups);
  if (what.annotations.size() != what.groups.size())
    in.refuse(errc::bad_value, "annotations", "{} for {} groups", what.annotations.size(),
              what.groups.size());
  for (std::size_t i = 0; in.ok() && i < what.bins.size(); ++i) {
    check_plan(in, what.step, what.bins[i]);
    const auto place = [&what](std::size_t at) {
      return std::tuple(what.bins[at].rank, what.bins[at].index);
    };
    if (i > 0 && place(i - 1) >= place(i))
      in.refuse(errc::bad_value, "bins", "rank {}, index {} is not in order", what.bins[i].rank,
                what.bins[i].index);
  }
  for (std::size_t i = 0; in.ok() && i < what.groups.size(); ++i)
    check_annotations(in, what.annotations[i], what.groups[i].key);
}

void check(field_reader &in, const log_settled &what) { check_groups(in, what.groups); }

void check(field_reader &in, const log_scored &what) {
  check_text(in, what.key, "key");
  if (!what.key.empty())
    check_number(in, what.number, "number");
  else if (what.number != 0 || !what.before.empty() || !what.after.empty())
    in.refuse(errc::bad_value, "key", "it is missing");
  in.count(what.before.size(), "before", limits::state_bytes);
  in.count(what.after.size(), "after", limits::state_bytes);
  if (const auto found = parse<wire::GroupAnnotations>(what.annotations); !found)
    in.refuse(found.error(), "annotations");
}

void check(field_reader &in, const log_trained &what) { check_number(in, what.step, "step"); }

void check(field_reader &in, const log_durable &what) { check_number(in, what.step, "step"); }

void check(field_reader &in, const log_rolled_back &what) {
  check_number(in, what.first, "first");
  if (what.last < what.first)
    in.refuse(errc::bad_value, "last", "{} is before the first, {}", what.last, what.first);
  if (what.trained > what.last)
    in.refuse(errc::bad_value, "trained", "{} is after the last, {}", what.trained, what.last);
}

} // namespace millrace
