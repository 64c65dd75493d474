// SPDX-License-Identifier: Apache-2.0
#include "transport/hub_thread.hpp"

#include <algorithm>
#include <random>
#include <utility>

namespace millrace {

namespace {

constexpr int most_sockets = 16'384; // libzmq's default, 1,023, is four for each of 255 peers
constexpr std::chrono::milliseconds last_words{
    1000}; // for answers that are on their way at the end

std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

hub_options complete(hub_options options) {
  if (!options.memory)
    options.memory = std::make_shared<memory_meter>();
  return options;
}

} // namespace

hub::thread::thread(hub_options options, hub_listener &listener)
    : core_{.options = complete(std::move(options)),
            .listener = listener,
            .context = zmq::context_t(1, most_sockets),
            .counters = {},
            .random = random_source(random_seed())} {}

result<std::unique_ptr<hub::thread>> hub::thread::start(hub_options options,
                                                        hub_listener &listener) {
  if (options.self.process.empty())
    return fail(errc::bad_argument, "a process without a name has no hub");
  std::unique_ptr<thread> made(new thread(std::move(options), listener));
  if (made->core_.options.curve) { // before the inbox: libzmq asks it at the first connection
    auto opened = gatekeeper::open(made->core_.context);
    if (!opened)
      return tl::unexpected(opened.error());
    made->gatekeeper_.emplace(std::move(*opened));
  }
  auto bound = inbox::bind(made->core_, made->wake_);
  if (!bound)
    return tl::unexpected(bound.error());
  made->inbox_ = std::move(*bound);
  made->runs_ = std::thread([thread = made.get()] { thread->run(); });
  return made;
}

hub::thread::~thread() {
  if (runs_.joinable())
    stop(std::chrono::milliseconds(0));
}

void hub::thread::post(command what) {
  const std::lock_guard lock(mutex_);
  if (stopped_)
    return;
  commands_.push_back(std::move(what));
  if (commands_.size() == 1) // one wake-up for all that come until the thread takes them
    wake_->wake();
}

link_id hub::thread::open(link_target target) {
  auto room = std::make_shared<link_room>();
  link_id id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = ++last_link_;
    rooms_.emplace(id, room);
  }
  post(open_link{id, std::move(target), std::move(room)});
  return id;
}

void hub::thread::close(link_id link) {
  {
    const std::lock_guard lock(mutex_);
    if (rooms_.erase(link) == 0)
      return;
  }
  post(close_link{link});
}

std::shared_ptr<link_room> hub::thread::room_of(link_id link) const {
  const std::lock_guard lock(mutex_);
  const auto at = rooms_.find(link);
  return at == rooms_.end() ? nullptr : at->second;
}

void hub::thread::send(link_id link, lane where, message parts, bool asked_for) {
  const auto &limits = core_.options.limits;
  const auto bytes = bytes_of(parts);
  MILLRACE_ASSERT(where == lane::data || bytes <= limits.control_bytes,
                  "a control message of {} bytes, at most {} are allowed", bytes,
                  limits.control_bytes);
  MILLRACE_ASSERT(parts.size() <= limits.parts, "a message of {} parts, at most {} are allowed",
                  parts.size(), limits.parts);
  for (const auto &part : parts)
    MILLRACE_ASSERT(part.size() <= limits.part_bytes, "a part of {} bytes, at most {} are allowed",
                    part.size(), limits.part_bytes);
  const std::lock_guard lock(mutex_);
  const auto at = rooms_.find(link);
  if (at == rooms_.end() || stopped_)
    return;
  if (where == lane::data && !asked_for) {
    at->second->queued += static_cast<std::int64_t>(bytes);
    ++at->second->messages;
  }
  hub_counters::add(core_.counters.in_flight_bytes, bytes);
  commands_.push_back(send_message{link, where, std::move(parts), asked_for});
  if (commands_.size() == 1)
    wake_->wake();
}

void hub::thread::answer(request_id request, message parts) {
  post(answer_request{request, std::move(parts)});
}

std::vector<undelivered> hub::thread::stop(std::chrono::milliseconds deadline) {
  post(stop_by{std::chrono::steady_clock::now() + deadline});
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (!runs_.joinable())
      return {};
  }
  runs_.join();
  return std::exchange(left_, {});
}

void hub::thread::run() {
  inbox_->read_monitor();
  while (true) {
    poll();
    const auto now = std::chrono::steady_clock::now();
    turn(now);
    if (finished(now))
      break;
  }
  shut_down();
}

/// How long nothing needs to be done. Unit: ms, rounded up.
int hub::thread::patience(time now) const {
  const bool busy = inbox_->has_input() || std::any_of(links_.begin(), links_.end(),
                                                       [](auto &one) { return one.second.dirty; });
  if (busy || now >= due_)
    return 0;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due_ - now);
  return static_cast<int>(std::min<std::int64_t>(left.count(), 1000));
}

/// Waits until something comes or is due, and notes where. Not zmq_poll(): it makes two system
/// calls for every socket each time.
void hub::thread::poll() {
  polled_.assign({{wake_->fd(), POLLIN, 0},
                  {inbox_->socket_descriptor(), POLLIN, 0},
                  {inbox_->monitor_descriptor(), POLLIN, 0}});
  if (gatekeeper_)
    polled_.push_back({gatekeeper_->descriptor(), POLLIN, 0});
  const auto first = polled_.size();
  for (auto &[id, one] : links_)
    for (const auto where : {lane::control, lane::data})
      if (const auto *session = one.what->session(where); session != nullptr) {
        polled_.push_back({session->socket_descriptor(), POLLIN, 0});
        polled_.push_back({session->monitor_descriptor(), POLLIN, 0});
      }
  ::poll(polled_.data(), polled_.size(), patience(std::chrono::steady_clock::now()));
  if (polled_[0].revents != 0)
    wake_->clear();
  if (polled_[1].revents != 0)
    inbox_->socket_is_ready();
  if (polled_[2].revents != 0)
    inbox_->read_monitor();
  auto at = first;
  for (auto &[id, one] : links_)
    for (const auto where : {lane::control, lane::data})
      if (auto *session = one.what->session(where); session != nullptr) {
        one.dirty = one.dirty || polled_[at].revents != 0 || polled_[at + 1].revents != 0;
        if (polled_[at].revents != 0)
          session->socket_is_ready();
        if (polled_[at + 1].revents != 0)
          session->monitor_is_ready();
        at += 2;
      }
}

void hub::thread::turn(time now) {
  run_commands();
  if (gatekeeper_)
    gatekeeper_->answer(*core_.options.curve);
  inbox_->read(now);
  due_ = inbox_->tick(now);
  for (auto &[id, one] : links_) {
    if (one.dirty || now >= one.due) {
      one.what->read(now);
      one.what->flush(now);
      one.due = one.what->tick(now);
      one.dirty = one.what->has_input();
    }
    due_ = std::min(due_, one.due);
  }
  inbox_->flush(now);
  if (stop_by_)
    due_ = std::min(due_, *stop_by_);
}

void hub::thread::run_commands() {
  std::vector<command> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(commands_);
  }
  for (auto &one : commands)
    std::visit([this](auto &what) { take(what); }, one);
}

void hub::thread::take(open_link &what) {
  links_[what.id].what =
      std::make_unique<link>(core_, what.id, std::move(what.target), std::move(what.room));
}

void hub::thread::take(close_link &what) { links_.erase(what.id); }

void hub::thread::take(open_data_lane &what) {
  if (const auto at = links_.find(what.id); at != links_.end()) {
    at->second.what->open_data();
    at->second.dirty = true;
  }
}

void hub::thread::take(send_message &what) {
  const auto at = links_.find(what.id);
  if (at == links_.end()) { // closed meanwhile
    core_.counters.in_flight_bytes -= bytes_of(what.parts);
    return;
  }
  at->second.what->push(what.where, std::move(what.parts), what.asked_for);
  at->second.dirty = true;
}

bool hub::thread::finished(time now) const {
  if (!stop_by_)
    return false;
  return now >= *stop_by_ || std::all_of(links_.begin(), links_.end(), [](const auto &one) {
           return one.second.what->settled();
         });
}

/// Counts what was left, says the last words, and closes all sockets.
void hub::thread::shut_down() {
  for (const auto &[id, one] : links_)
    if (auto left = one.what->left(); left.messages > 0)
      left_.push_back(std::move(left));
  links_.clear();
  inbox_->close(std::chrono::steady_clock::now(), last_words);
  gatekeeper_.reset();
  core_.context.close();
}

} // namespace millrace
