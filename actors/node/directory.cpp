// SPDX-License-Identifier: Apache-2.0
#include "actors/node/directory.hpp"

#include <utility>

#include "runtime/log.hpp"

namespace millrace {

namespace {
using clock = std::chrono::steady_clock;
}

directory::directory(caf::actor_config &config, const actor_context &context,
                     directory_options options, std::shared_ptr<post> office)
    : stage_actor(config, context, "directory"), lease_(options.lease),
      table_(std::move(options), clock::now()), office_(std::move(office)) {}

caf::behavior directory::make_behavior() {
  send(this, check_leases{});
  return {on(&directory::take_mail), on(&directory::answer_tool), on(&directory::check)};
}

void directory::take_mail(const host_mail &in) {
  if (const auto *news = std::get_if<process_alive>(&in.parcel.what))
    take_news(in.from, *news);
  else if (const auto *leaving = std::get_if<process_leaves>(&in.parcel.what))
    table_.leaves(clock::now(), *leaving);
  else if (const auto *lost = std::get_if<process_lost>(&in.parcel.what))
    table_.lost(*lost);
  push_changes();
}

void directory::take_news(const process_identity &from, const process_alive &news) {
  if (news.entry.process != from.process || news.entry.incarnation != from.incarnation) {
    log::warn("directory: process {} sent news of {}: ignored", from.process, news.entry.process);
    return;
  }
  const auto taken = table_.alive(clock::now(), news);
  // Late words of an incarnation that links refuse by now, with that reason. To learn it again
  // would take the name from who has it.
  if (taken && *taken == directory_table::registration::superseded)
    return;
  office_->learn(news.entry);
  if (!taken) {
    office_->send(from.process, host_parcel{end_run{taken.error().message, false}});
    return;
  }
  if (*taken == directory_table::registration::given_up) {
    office_->send(from.process,
                  host_parcel{end_run{fmt::format("{} was taken for lost, and others do its work: "
                                                  "it must be started again",
                                                  from.process),
                                      true}});
    return;
  }
  if (*taken == directory_table::registration::added) {
    told_.insert(from.process);
    for (auto &view : table_.view())
      office_->send(from.process, host_parcel{std::move(view)});
  }
}

void directory::answer_tool(const tool_mail &in) {
  host_parcel answer{tool_answer{false, "a tool asks for status or drain"}};
  if (std::holds_alternative<status_question>(in.parcel.what))
    answer.what = table_.answer(clock::now());
  else if (const auto *drain = std::get_if<drain_question>(&in.parcel.what))
    answer.what = drain_one(drain->name);
  office_->answer(in.request, answer);
  push_changes();
}

tool_answer directory::drain_one(const std::string &name) {
  const auto entry = table_.drain(name);
  if (!entry)
    return {false, entry.error().message};
  office_->send(entry->process, host_parcel{drain_process{}});
  return {true, fmt::format("{} finishes what it has, and leaves", entry->process)};
}

void directory::check(const check_leases &) {
  for (const auto &gone : table_.expire(clock::now()))
    log::warn("directory: {} has not been heard of for {} ms: it counts as gone", gone.process,
              lease_.count());
  push_changes();
  delayed_send(this, lease_ / 8, check_leases{});
}

void directory::push_changes() {
  for (const auto &view : table_.changes())
    for (const auto &process : told_)
      office_->send(process, host_parcel{view});
}

} // namespace millrace
