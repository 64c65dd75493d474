// SPDX-License-Identifier: Apache-2.0
#include "actors/node/host.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/log.hpp"

namespace millrace {

namespace {

/// Status that people look at is at most so old.
constexpr std::chrono::milliseconds freshness{1000};
/// How much later than the news that it has left a process's report may come.
constexpr std::chrono::seconds report_deadline{10};

constexpr std::array end_order{role::env_reader, role::assembler, role::scorer,
                               role::packer,     role::trainer,   role::directory};

/// When a process ends: with the last of its actors.
std::size_t stage_of(const process_entry &entry) {
  std::size_t last = 0;
  for (const auto &actor : entry.actors)
    last = std::max(last, static_cast<std::size_t>(std::ranges::find(end_order, actor.what) -
                                                   end_order.begin()));
  return last;
}

} // namespace

host::host(caf::actor_config &config, const actor_context &context, host_options options,
           std::shared_ptr<post> office, std::vector<contact> contacts, caf::actor directory,
           caf::actor supervisor)
    : stage_actor(config, context, "host"), options_(std::move(options)),
      office_(std::move(office)), contacts_(std::move(contacts)), directory_(std::move(directory)),
      supervisor_(std::move(supervisor)) {}

caf::behavior host::make_behavior() {
  send(this, host_tick{});
  return {on(&host::take_mail), on(&host::take_link),    on(&host::tick),  on(&host::take_hunger),
          on(&host::finish),    on(&host::take_drained), on(&host::leave), on(&host::end_all)};
}

void host::on_exit() {
  office_.reset();
  contacts_.clear();
  directory_ = {};
  supervisor_ = {};
}

void host::take_mail(const host_mail &in) {
  if (const auto *view = std::get_if<directory_view>(&in.parcel.what))
    take_view(*view);
  else if (const auto *end = std::get_if<end_run>(&in.parcel.what))
    caf::anon_send(supervisor_, run_over{end->failure, end->restart, true, false});
  else if (const auto *report = std::get_if<process_report>(&in.parcel.what))
    take_report(in.from, *report);
  else if (std::holds_alternative<drain_process>(in.parcel.what))
    finish({});
}

void host::take_view(const directory_view &view) {
  if (view.directory < directory_incarnation_)
    return; // late words of one that was replaced
  if (view.directory > directory_incarnation_) {
    directory_incarnation_ = view.directory;
    directory_since_ = clock::now();
  }
  for (const auto &entry : view.entries)
    take_entry(entry);
}

void host::take_entry(const process_entry &entry) {
  if (entry.process == options_.entry.process)
    return;
  const auto known = neighbours_.find(entry.process);
  const bool ended = entry.state == process_state::left || entry.state == process_state::gone;
  if (known != neighbours_.end() && known->second.entry.incarnation == entry.incarnation) {
    auto &one = known->second;
    one.confirmed_by = directory_incarnation_;
    one.said_gone = entry.state == process_state::gone;
    if (entry.state == process_state::draining)
      start_draining(one);
    else if (entry.state == process_state::left)
      see_off(one);
    else if (one.said_gone && one.link != link_state::up && !office_->has_link(entry.process))
      probe(one);
    else if (one.said_gone && one.link != link_state::up)
      lose(entry.process, "lost: nobody has heard of it for link.timeout");
    return;
  }
  if (known != neighbours_.end() && entry.incarnation > known->second.entry.incarnation)
    bring_down(entry.process, "replaced by a later start");
  const auto down = ended_.find(entry.process);
  if (!ended && (down == ended_.end() || down->second < entry.incarnation) &&
      !neighbours_.contains(entry.process))
    bring_up(entry);
}

void host::bring_up(const process_entry &entry) {
  unmissed_.erase(entry.process);
  if (missing_.erase(entry.process) > 0)
    log::info("{}: {} is back", options_.entry.process, entry.process);
  auto &one = neighbours_[entry.process];
  one.entry = entry;
  one.link_since = clock::now();
  one.confirmed_by = directory_incarnation_;
  office_->learn(entry);
  if (std::ranges::any_of(entry.actors,
                          [](const auto &actor) { return actor.what == role::planner; }))
    office_->link_to(entry.process); // whoever loses sight of the planner must know
  for (const auto &actor : entry.actors) {
    const peer who = office_->find({actor.name, entry.incarnation});
    tell_stages(actor.what, peer_up{actor.what, who}, false);
  }
  if (entry.state == process_state::draining)
    start_draining(one);
  if (hungry_ && plans())
    office_->send(entry.process, "host", parcel{hunger{true}});
  if (ending_) { // it came too late
    ending_now_.insert(entry.process);
    office_->send(entry.process, host_parcel{end_run{failure_, false}});
  }
}

void host::start_draining(neighbour &one) {
  if (std::exchange(one.draining, true))
    return;
  for (const auto &actor : one.entry.actors)
    tell_stages(actor.what,
                peer_draining{actor.what, office_->find({actor.name, one.entry.incarnation})},
                false);
}

void host::bring_down(const std::string &process, const std::string &why) {
  const auto node = neighbours_.extract(process);
  const auto &entry = node.mapped().entry;
  log::info("{}: {} {}", options_.entry.process, process, why);
  for (const auto &actor : entry.actors) {
    tell_stages(actor.what,
                peer_down{actor.what, office_->find({actor.name, entry.incarnation}), why}, true);
  }
  // One that has left in order has given up nothing that it alone had.
  if (essential(entry) && (!node.mapped().left || pinned_to(entry) == 0))
    miss(entry, why);
  else if (!node.mapped().left)
    unmissed_[process] = {clock::now(), why, entry};
  if (office_->forget(process, entry.incarnation))
    ended_[process] = entry.incarnation;
  if (ending_ && ending_now_.erase(process) > 0 && ending_now_.empty())
    end_next_stage();
}

/// The run cannot go on without it. It may be started again.
void host::miss(const process_entry &entry, const std::string &why) {
  if (over_)
    return;
  missing_[entry.process] = {clock::now(), why, entry};
  if (options_.patience_for_restart.count() == 0)
    end_if_missed_too_long(clock::now());
  else if (!ending_)
    log::warn("{}: {} is gone ({}): it has {:.0f} s to be started again", options_.entry.process,
              entry.process, why,
              std::chrono::duration<double>(options_.patience_for_restart).count());
}

void host::end_if_missed_too_long(clock::time_point now) {
  // What an assembler had may be done meanwhile, or readers here learn only now that it had it.
  for (const auto &[process, one] : unmissed_)
    if (pinned_to(one.entry) > 0)
      missing_.emplace(process, one);
  std::erase_if(missing_, [this](const auto &one) { return !essential(one.second.entry); });
  for (const auto &[process, one] : missing_) {
    if (now - one.since < options_.patience_for_restart || std::exchange(over_, true))
      continue;
    const auto groups = pinned_to(one.entry);
    const auto what = groups == 0 ? std::string()
                                  : fmt::format(": only its journal has what came of {} groups; "
                                                "start it again under its name, where its state is",
                                                groups);
    caf::anon_send(supervisor_,
                   run_over{.failure = fmt::format("{} is gone ({}): the run cannot go on without "
                                                   "it{}",
                                                   process, one.why, what)});
  }
}

/// Neither the directory nor this process hears of it. Should it come back, it must begin anew:
/// others have its work.
void host::lose(const std::string &process, const std::string &why) {
  const auto incarnation = neighbours_.at(process).entry.incarnation;
  bring_down(process, why);
  if (ended_.contains(process)) // else nothing was ever sent to it, and it may come back
    to_directory(host_parcel{process_lost{process, incarnation}});
}

/// The planner is in this process.
bool host::plans() const {
  return std::ranges::any_of(contacts_, [](const auto &one) { return one.what == role::planner; });
}

/// Nobody can go on without a planner; the planner can not without readers and trainers.
bool host::essential(role what) const {
  return what == role::planner || (plans() && (what == role::env_reader || what == role::trainer));
}

/// The same of a process: also of one that alone has what readers here have sent.
bool host::essential(const process_entry &entry) const {
  return std::ranges::any_of(entry.actors, [&](const auto &one) { return essential(one.what); }) ||
         pinned_to(entry) > 0;
}

std::uint64_t host::pinned_to(const process_entry &entry) const {
  std::uint64_t groups = 0;
  for (const auto &actor : entry.actors)
    if (actor.what == role::assembler && options_.pinned)
      groups += options_.pinned(actor.name);
  return groups;
}

template <class Event> void host::tell_stages(role what, const Event &event, bool loss) {
  for (const auto &one : contacts_)
    if (loss ? hears_of_loss(one.what, what) : works_with(one.what, what))
      tell(one.who, event);
}

void host::take_link(const link_event &in) {
  const auto now = clock::now();
  if (in.process == options_.directory_process) {
    if (in.state == link_state::replaced) { // it has started again, and knows nobody
      office_->forget(in.process, 0);
      office_->learn({.process = in.process,
                      .incarnation = 0,
                      .endpoint = options_.directory_endpoint,
                      .key = options_.directory_key,
                      .actors = {}});
      office_->link_to(in.process);
    }
    directory_link_ = in.state;
    directory_link_since_ = now;
    if (in.state == link_state::up)
      renew();
    else if (in.state == link_state::refused)
      caf::anon_send(supervisor_, run_over{.failure = fmt::format("the directory refuses {}: {}",
                                                                  options_.entry.process, in.why)});
  }
  const auto known = neighbours_.find(in.process);
  if (known == neighbours_.end() || known->second.entry.incarnation != in.incarnation)
    return;
  auto &one = known->second;
  one.link = in.state;
  one.link_since = now;
  if (in.state == link_state::replaced)
    bring_down(in.process, "replaced by a later start");
  else if (in.state == link_state::refused)
    caf::anon_send(supervisor_, run_over{.failure = fmt::format("{} refuses {}: {}", in.process,
                                                                options_.entry.process, in.why)});
  else if (in.state == link_state::down && one.said_gone)
    lose(in.process, "lost: nobody has heard of it for link.timeout");
}

/// The directory has no word of it, and nothing was sent to it yet: whether it is there is seen
/// when a link has a lease's time to come up.
void host::probe(neighbour &one) {
  office_->link_to(one.entry.process);
  one.link_since = clock::now();
}

void host::tick(const host_tick &) {
  renew();
  const auto now = clock::now();
  // The directory has been told to end: nobody else says any more who is gone.
  const bool alone = ending_ && next_stage_ >= end_order.size();
  std::vector<std::pair<std::string, std::string_view>> lost;
  for (const auto &[process, one] : neighbours_) {
    if (one.link == link_state::up || now - one.link_since < options_.lease)
      continue;
    if (one.said_gone || alone)
      lost.emplace_back(process, "lost: nobody has heard of it for link.timeout");
    // One that died while the directory was away is in no view of the new one.
    else if (one.confirmed_by != directory_incarnation_ &&
             now - directory_since_ > 2 * options_.lease)
      lost.emplace_back(process, "lost: it has not registered with the new directory");
  }
  for (const auto &[process, why] : lost)
    lose(process, std::string(why));
  for (auto at = neighbours_.begin(); at != neighbours_.end();) // see_off() may take it out
    if (auto &one = (at++)->second; one.left)
      see_off(one);
  end_if_missed_too_long(now);
  lose_all_sight(now);
  miss_directory(now);
  delayed_send(this, std::min(options_.lease / 4, freshness), host_tick{});
}

/// Without the directory nobody is declared gone; but without the directory and the planner there
/// is no run.
void host::lose_all_sight(clock::time_point now) {
  if (over_ || options_.has_directory || directory_link_ == link_state::up)
    return;
  const auto planner = std::ranges::find_if(neighbours_, [](const auto &one) {
    return std::ranges::any_of(one.second.entry.actors,
                               [](const auto &actor) { return actor.what == role::planner; });
  });
  if (planner == neighbours_.end() || planner->second.link == link_state::up)
    return;
  const auto since = std::max(directory_link_since_, planner->second.link_since);
  if (now - since < 3 * options_.lease + options_.patience_for_restart)
    return;
  over_ = true;
  caf::anon_send(supervisor_, run_over{.failure = fmt::format(
                                           "{} and the directory are gone: the run cannot go on",
                                           planner->first)});
}

has_left host::leave(const leave_run &in) {
  for (const auto &[process, one] : neighbours_)
    if (std::ranges::any_of(one.entry.actors,
                            [](const auto &actor) { return actor.what == role::planner; }))
      office_->send(process, host_parcel{in.report});
  to_directory(host_parcel{process_leaves{options_.entry.process, options_.entry.incarnation}});
  left_ = true;
  if (in.run_is_over)
    for (const auto &[process, one] : neighbours_)
      if (process != options_.directory_process &&
          std::ranges::none_of(one.entry.actors,
                               [](const auto &actor) { return actor.what == role::planner; }))
        office_->forget(process, one.entry.incarnation);
  if (ending_) // it has ended before this process
    office_->forget(options_.directory_process, 0);
  return {};
}

void host::end_all(const end_others &in) {
  if (std::exchange(ending_, true))
    return;
  failure_ = in.failure;
  end_next_stage();
}

/// Sources first, trainers after them, the directory last; each when those before it have reported.
void host::end_next_stage() {
  for (; next_stage_ <= end_order.size() && ending_now_.empty(); ++next_stage_)
    for (const auto &[process, one] : neighbours_)
      if (stage_of(one.entry) == next_stage_) {
        ending_now_.insert(process);
        office_->send(process, host_parcel{end_run{failure_, false}});
      }
  if (ending_now_.empty())
    caf::anon_send(supervisor_, others_ended{std::move(reports_)});
}

void host::take_report(const process_identity &from, const process_report &in) {
  reports_.push_back(in);
  if (ending_now_.erase(in.process) > 0 && ending_now_.empty())
    end_next_stage();
  const auto known = neighbours_.find(from.process);
  if (known == neighbours_.end() || known->second.entry.incarnation != from.incarnation)
    return;
  known->second.reported = true;
  if (known->second.left)
    see_off(known->second);
}

/// It has left in order. Its report to the planner's process was sent before it said so, and may
/// be on a slower way.
void host::see_off(neighbour &one) {
  const auto now = clock::now();
  if (!one.left)
    one.left = now;
  if (!plans() || one.reported)
    bring_down(std::string(one.entry.process), "left");
  else if (now - *one.left > report_deadline)
    bring_down(std::string(one.entry.process), "left, and its report never came");
}

/// Says so after a lease, and then more and more rarely.
void host::miss_directory(clock::time_point now) {
  if (options_.has_directory || directory_link_ == link_state::up) {
    patience_ = options_.lease;
    return;
  }
  const auto missed =
      std::chrono::duration_cast<std::chrono::milliseconds>(now - directory_link_since_);
  if (missed < patience_)
    return;
  patience_ = std::max(2 * patience_, options_.lease);
  if (missed >= options_.lease)
    log::warn("{}: no directory at {} for {:.0f} s: is it up, and is directory.endpoint right?",
              options_.entry.process, options_.directory_endpoint,
              std::chrono::duration<double>(missed).count());
}

void host::renew() {
  if (left_)
    return;

  options_.entry.state = draining_ ? process_state::draining : process_state::alive;
  const process_alive news{options_.entry, options_.status()};
  to_directory(host_parcel{news});
}

void host::to_directory(const host_parcel &what) {
  if (options_.has_directory)
    caf::anon_send(directory_, host_mail{{.run = {},
                                          .process = options_.entry.process,
                                          .roles = {},
                                          .incarnation = options_.entry.incarnation,
                                          .program = {},
                                          .config = {}},
                                         what});
  else if (directory_link_ == link_state::up) // else it would hear old news, one after the other
    office_->send(options_.directory_process, what);
}

/// From the planner, here or elsewhere: to the hub here, and from the planner's process to all.
void host::take_hunger(const hunger &in) {
  hungry_ = in.hungry;
  office_->set_hungry(in.hungry);
  if (plans())
    for (const auto &[process, one] : neighbours_)
      office_->send(process, "host", parcel{in});
}

void host::finish(const drain &) {
  if (std::exchange(draining_, true))
    return;
  log::info("{}: draining: it finishes what it has, and leaves", options_.entry.process);
  renew();
  for (const auto &one : contacts_)
    if (one.what == role::scorer || one.what == role::assembler || one.what == role::packer) {
      not_drained_.insert(one.who.id().name);
      tell(one.who, drain{});
    }
}

void host::take_drained(const drained &in) {
  if (not_drained_.erase(in.who) > 0 && not_drained_.empty())
    caf::anon_send(supervisor_, run_over{"", false, true, true});
}

} // namespace millrace
