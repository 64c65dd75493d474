// SPDX-License-Identifier: Apache-2.0
#include "actors/node/post.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include "actors/node/host_codec.hpp"
#include "runtime/log.hpp"

namespace millrace {

/// The way to an actor of another process. While nobody knows where that is, messages wait; a link
/// is opened when the first one leaves. Locks: its own before the post's.
class linked_peer final : public remote_peer {
public:
  linked_peer(std::weak_ptr<post> office, std::string to)
      : office_(std::move(office)), to_(std::move(to)) {}

  void send(parcel what) override {
    auto encoded = encode(what, to_);
    const std::lock_guard lock(mutex_);
    const auto office = office_.lock();
    if (!office || gone_)
      return;
    if (const auto link = find_link(*office))
      office->hub_->send(*link, encoded.where, std::move(encoded.parts), encoded.asked_for);
    else
      waiting_.push_back(std::move(encoded));
  }

  bool can_take() const override {
    const std::lock_guard lock(mutex_);
    const auto office = office_.lock();
    const auto link = office ? find_link(*office) : std::nullopt;
    return link ? office->hub_->can_take(*link) : waiting_.empty();
  }

  std::int64_t room() const override {
    const std::lock_guard lock(mutex_);
    const auto office = office_.lock();
    const auto link = office ? find_link(*office) : std::nullopt;
    return link ? office->hub_->room(*link) : 0;
  }

  /// It is in this process; what waits leaves.
  void bind(const std::string &process) {
    const std::lock_guard lock(mutex_);
    const auto office = office_.lock();
    if (!office || gone_ || !process_.empty())
      return;
    process_ = process;
    if (waiting_.empty())
      return;
    if (const auto link = find_link(*office))
      for (auto &each : std::exchange(waiting_, {}))
        office->hub_->send(*link, each.where, std::move(each.parts), each.asked_for);
  }

  /// The process is gone. A name that stands for any incarnation may be bound again.
  void unbind(const std::string &process, bool for_good) {
    const std::lock_guard lock(mutex_);
    if (process_ != process && !for_good)
      return;
    process_.clear();
    link_.reset();
    gone_ = for_good;
    if (for_good)
      waiting_.clear();
  }

private:
  std::optional<link_id> find_link(post &office) const {
    if (!link_ && !process_.empty())
      link_ = office.link_to(process_);
    return link_;
  }

  const std::weak_ptr<post> office_;
  const std::string to_;
  mutable std::mutex mutex_;
  std::string process_; ///< empty: not known
  mutable std::optional<link_id> link_;
  std::deque<encoded_parcel> waiting_;
  bool gone_ = false;
};

/// Reads what came from one process, in its order, on a worker: verifying a large episode would
/// hold the hub's thread up.
struct raw_parcel {
  message parts;
};

} // namespace millrace

MILLRACE_MESSAGE(millrace::raw_parcel)

namespace millrace {

namespace {

class inlet final : public stage_actor {
public:
  using reader = std::function<void(const message &)>;
  inlet(caf::actor_config &config, const actor_context &context, reader read)
      : stage_actor(config, context, "inlet"), read_(std::move(read)) {}
  caf::behavior make_behavior() override { return {on(&inlet::take)}; }

private:
  void take(const raw_parcel &in) { read_(in.parts); }
  const reader read_;
};

bool fits_control(const message &parts) {
  std::size_t bytes = 0;
  for (const auto &part : parts)
    bytes += part.size();
  return bytes <= link_limits{}.control_bytes;
}

} // namespace

void post::employ(staff who) {
  const std::lock_guard lock(mutex_);
  staff_ = std::move(who);
}

void post::add_local(const contact &who) {
  const std::lock_guard lock(mutex_);
  local_.insert_or_assign(who.who.id().name, who);
}

void post::seat(std::shared_ptr<feed_desks> desks) {
  desks->answer_through([office = weak_from_this()](request_id request, message parts) {
    if (const auto here = office.lock())
      here->answer(request, std::move(parts));
  });
  const std::lock_guard lock(mutex_);
  desks_ = std::move(desks);
}

/// Questions may come before it has returned: they wait for the hub.
status post::open(hub_options options) {
  const std::lock_guard lock(mutex_);
  self_ = options.self;
  auto started = hub::start(std::move(options), *this);
  if (!started)
    return tl::unexpected(std::move(started).error());
  hub_ = std::move(*started);
  return {};
}

peer post::find(const peer_id &id) {
  const std::lock_guard lock(mutex_);
  if (const auto here = local_.find(id.name);
      here != local_.end() &&
      (id.incarnation == 0 || id.incarnation == here->second.who.id().incarnation))
    return here->second.who;
  return {id, remote(id)};
}

/// Precondition: mutex_ is held.
std::shared_ptr<linked_peer> post::remote(const peer_id &id) {
  auto &one = remote_[id];
  if (!one)
    one = std::make_shared<linked_peer>(weak_from_this(), id.name);
  return one;
}

void post::learn(const process_entry &entry) {
  std::vector<std::shared_ptr<linked_peer>> found;
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || entry.process == self_.process)
      return;
    auto &known = links_[entry.process];
    if (known.target.endpoint.empty() ||
        (known.target.incarnation != 0 && known.target.incarnation != entry.incarnation)) {
      if (known.link != 0)
        drop(known.link);
      known = {{entry.process, entry.incarnation, entry.endpoint, entry.key}, 0};
    }
    for (const auto &actor : entry.actors) {
      found.push_back(remote({actor.name, entry.incarnation}));
      found.push_back(remote({actor.name, 0}));
    }
  }
  for (const auto &one : found)
    one->bind(entry.process);
}

std::optional<link_id> post::link_to(const std::string &process) {
  const std::lock_guard lock(mutex_);
  const auto known = links_.find(process);
  if (known == links_.end() || closed_)
    return std::nullopt;
  auto &[target, link] = known->second;
  if (link == 0) {
    link = hub_->open(target);
    process_of_[link] = {process, target.incarnation};
  }
  return link;
}

bool post::has_link(const std::string &process) const {
  const std::lock_guard lock(mutex_);
  const auto known = links_.find(process);
  return known != links_.end() && known->second.link != 0;
}

/// Precondition: mutex_ is held.
void post::drop(link_id link) {
  process_of_.erase(link);
  hub_->close(link);
}

bool post::forget(const std::string &process, std::uint64_t incarnation) {
  std::vector<std::pair<std::shared_ptr<linked_peer>, bool>> found;
  bool had_link = false;
  {
    const std::lock_guard lock(mutex_);
    const auto known = links_.find(process);
    if (known == links_.end() || known->second.target.incarnation < incarnation)
      return false;
    if (known->second.target.incarnation == incarnation) {
      had_link = known->second.link != 0;
      if (had_link)
        drop(known->second.link);
      links_.erase(known);
    } else {
      had_link = true; // a later start has the name, and the link was closed for it
    }
    for (const auto &[id, one] : remote_)
      if (id.incarnation == 0 || id.incarnation == incarnation)
        found.emplace_back(one, id.incarnation != 0 && had_link);
    if (const auto inlet = inlets_.find({process, incarnation}); inlet != inlets_.end()) {
      caf::anon_send_exit(inlet->second, caf::exit_reason::user_shutdown);
      inlets_.erase(inlet);
    }
  }
  for (const auto &[one, for_good] : found)
    one->unbind(process, for_good);
  return had_link;
}

void post::send(const std::string &process, const host_parcel &what) {
  if (process == self_.process) {
    const std::lock_guard lock(mutex_);
    caf::anon_send(staff_.host, host_mail{self_, what});
  } else if (const auto link = link_to(process)) {
    auto parts = encode(what);
    const auto where = fits_control(parts) ? lane::control : lane::data;
    hub_->send(*link, where, std::move(parts));
  }
}

void post::send(const std::string &process, const std::string &actor, const parcel &what) {
  auto encoded = encode(what, actor);
  if (const auto link = link_to(process))
    hub_->send(*link, encoded.where, std::move(encoded.parts), encoded.asked_for);
}

void post::answer(request_id request, const host_parcel &what) {
  hub_->answer(request, encode(what));
}

void post::answer(request_id request, message parts) { hub_->answer(request, std::move(parts)); }

void post::received(const process_identity &from, message parts) {
  if (is_host_message(parts)) {
    take_host_message(from, parts);
    return;
  }
  const std::lock_guard lock(mutex_);
  if (closed_)
    return;
  auto &one = inlets_[{from.process, from.incarnation}];
  if (!one)
    one = system_.spawn<inlet>(context_, [this, from](const message &raw) {
      auto in = decode(
          raw, [this](const peer_id &id) { return find(id); }, memory_);
      if (!in) {
        complain(from, in.error());
        return;
      }
      const auto to = find({in->to, 0});
      if (!to.local()) {
        complain(from, {errc::not_found, fmt::format("no actor {} is here", in->to)});
        return;
      }
      std::visit([&](auto &what) { tell(to, std::move(what)); }, in->what.what);
    });
  caf::anon_send(one, raw_parcel{std::move(parts)});
}

void post::take_host_message(const process_identity &from, const message &parts) {
  auto in = decode_host(parts);
  if (!in) {
    complain(from, in.error());
    return;
  }
  const std::lock_guard lock(mutex_);
  const bool for_directory = std::holds_alternative<process_alive>(in->what) ||
                             std::holds_alternative<process_leaves>(in->what) ||
                             std::holds_alternative<process_lost>(in->what);
  const auto &whom = for_directory ? staff_.directory : staff_.host;
  if (whom)
    caf::anon_send(whom, host_mail{from, std::move(*in)});
}

void post::complain(const process_identity &from, const error &why) {
  const std::lock_guard lock(mutex_);
  if (staff_.supervisor)
    caf::anon_send(staff_.supervisor,
                   run_failed{from.process, {why.code, "sent what is none: " + why.message}});
}

void post::asked(request_id request, message parts) {
  auto in = decode_host(parts);
  std::unique_lock lock(mutex_);
  if (const auto *feed = in ? std::get_if<feed_question>(&in->what) : nullptr; feed && desks_) {
    const auto desks = desks_;
    lock.unlock(); // a desk has a lock of its own
    desks->ask(request, *feed);
    return;
  }
  if (!in)
    hub_->answer(request, encode(host_parcel{tool_answer{false, in.error().message}}));
  else if (!staff_.directory)
    hub_->answer(request,
                 encode(host_parcel{tool_answer{
                     false, "this process is not the directory: name directory.endpoint"}}));
  else
    caf::anon_send(staff_.directory, tool_mail{request, std::move(*in)});
}

void post::link_changed(link_id link, link_state state, const std::string &why) {
  const std::lock_guard lock(mutex_);
  const auto known = process_of_.find(link);
  if (known != process_of_.end() && staff_.host)
    caf::anon_send(staff_.host, link_event{known->second.first, known->second.second, state, why});
}

void post::room_came(link_id) {
  const std::lock_guard lock(mutex_);
  for (const auto &[name, one] : local_)
    if (one.what == role::env_reader)
      tell(one.who, millrace::room_came{});
}

std::vector<undelivered> post::close(std::chrono::milliseconds deadline) {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  auto left = hub_ ? hub_->stop(deadline) : std::vector<undelivered>{};
  std::map<std::pair<std::string, std::uint64_t>, caf::actor> inlets;
  std::map<std::string, contact, std::less<>> local;
  {
    const std::lock_guard lock(mutex_);
    inlets.swap(inlets_);
    local.swap(local_);
    staff_ = {};
    remote_.clear();
  }
  for (const auto &[from, one] : inlets)
    caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
  return left;
}

} // namespace millrace
