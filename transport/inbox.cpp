// SPDX-License-Identifier: Apache-2.0
#include "transport/inbox.hpp"

#include <algorithm>
#include <utility>

#include "transport/gatekeeper.hpp"

namespace millrace {

namespace {

constexpr int failed_handshakes = ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                                  ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                                  ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
constexpr std::size_t most_requests = 1024; // that wait for their answers
constexpr std::uint64_t turn_bytes = 64 << 20;
constexpr int turn_messages = 256;

status check_safe(const endpoint &at, const hub_options &options) {
  if (options.curve || options.insecure || at.is_local())
    return {};
  return fail(errc::bad_argument,
              "'{}' can be reached from other machines: give keys (millrace keygen), or set "
              "insecure = true if you trust everyone there",
              at.text());
}

status use_server_keys(zmq::socket_t &socket, const curve_config &config) try {
  socket.set(zmq::sockopt::curve_server, true);
  socket.set(zmq::sockopt::curve_secretkey, config.mine.secret_key);
  socket.set(zmq::sockopt::zap_domain, "millrace");
  return {};
} catch (const zmq::error_t &why) {
  return fail(errc::bad_argument, "not a CURVE key: {}", why.what());
}

/// Binds, and tells what was bound.
result<endpoint> bind_to(zmq::socket_t &socket, const endpoint &at) {
  if (zmq_bind(socket.handle(), at.text().c_str()) != 0)
    return fail(errc::io, "cannot bind '{}': {}", at.text(), zmq_strerror(zmq_errno()));
  if (at.is_ipc())
    return at;
  auto bound = endpoint::parse(socket.get(zmq::sockopt::last_endpoint));
  if (bound)
    bound->host = at.host; // libzmq may write another form of it
  return bound;
}

} // namespace

result<std::unique_ptr<inbox>> inbox::bind(hub_core &core, std::shared_ptr<waker> wake) {
  const auto &options = core.options;
  const auto at = endpoint::parse(options.bind);
  if (!at)
    return tl::unexpected(at.error());
  MILLRACE_TRY(check_safe(*at, options));
  std::optional<ipc_claim> claim;
  if (at->is_ipc()) {
    auto taken = ipc_claim::take(at->path);
    if (!taken)
      return tl::unexpected(taken.error());
    claim.emplace(std::move(*taken));
  }
  auto router = make_socket(core.context, zmq::socket_type::router, *at, options.limits);
  if (!router)
    return tl::unexpected(router.error());
  if (options.curve)
    MILLRACE_TRY(use_server_keys(*router, *options.curve));
  auto monitor = socket_monitor::watch(core.context, *router, "inbox", failed_handshakes);
  if (!monitor)
    return tl::unexpected(monitor.error());
  const auto bound = bind_to(*router, *at);
  const auto reached = bound ? advertised(*bound, options.advertise) : bound;
  if (!reached) {
    monitor->stop(*router);
    return tl::unexpected(reached.error());
  }
  return std::unique_ptr<inbox>(new inbox(core, std::move(wake), std::move(*router),
                                          std::move(*monitor), std::move(claim), reached->text()));
}

inbox::inbox(hub_core &core, std::shared_ptr<waker> wake, zmq::socket_t router,
             socket_monitor monitor, std::optional<ipc_claim> claim, std::string reached_at)
    : core_(core), wake_(std::move(wake)), starving_(std::make_shared<std::atomic<bool>>(false)),
      claim_(std::move(claim)), router_(std::move(router)), monitor_(std::move(monitor)),
      reached_at_(std::move(reached_at)),
      budget_(core.options.memory_limit, core.options.limits.window_bytes),
      questions_(std::make_shared<arrivals>()) {
  questions_->meter = core.options.memory;
  questions_->wake = wake_;
  questions_->starving = starving_;
}

inbox::~inbox() { close({}); }

void inbox::close(std::chrono::milliseconds linger) {
  if (!router_)
    return;
  monitor_.stop(router_);
  router_.set(zmq::sockopt::linger, static_cast<int>(linger.count()));
  router_.close();
}

bool inbox::has_input() {
  if (std::exchange(sent_, false) && !ready_)
    ready_ = millrace::has_input(router_);
  return ready_;
}

bool inbox::say(const std::string &route, const link_header &header, const message &parts) {
  sent_ = true;
  return send(router_, route, encode(header, parts.size()), parts);
}

void inbox::read_monitor() {
  while (const auto event = monitor_.next())
    if ((event->what & failed_handshakes) != 0)
      hub_counters::add(core_.options.curve ? core_.counters.auth_failures
                                            : core_.counters.garbage);
}

void inbox::read(time now) {
  std::uint64_t bytes = 0;
  for (int i = 0; ready_ && i < turn_messages && bytes < turn_bytes; ++i) {
    auto in = receive(router_, core_.options.limits.parts);
    ready_ = in.has_value();
    if (!in)
      return;
    bytes += in->bytes;
    take(std::move(*in), now);
  }
}

void inbox::take(incoming in, time now) {
  if (in.too_many)
    return garbage(in.route, error{errc::too_large, fmt::format("a message of more than {} parts",
                                                                core_.options.limits.parts)});
  const std::span bytes(in.header.data<std::byte>(), in.header.size());
  const auto header = parse_link_header(bytes, in.parts.size());
  if (!header)
    return garbage(in.route, header.error());
  if (header->kind == link_kind::hello)
    return take_hello(in.route, *header, key_of(in.header), now);
  if (header->kind == link_kind::request)
    return take_request(*header, std::move(in));
  auto *from = sender_of(in.route, *header);
  if (from == nullptr)
    return;
  from->heard = now;
  if (header->kind == link_kind::heartbeat)
    take_heartbeat(*from, *header);
  else
    take_message(*from, *header, std::move(in), now);
}

/// The sender whose session a message belongs to. Null, and counted, if there is none.
sender *inbox::sender_of(const std::string &route, const link_header &in) {
  const auto at = routes_.find(route);
  const bool fits = in.kind == link_kind::heartbeat || in.kind == link_kind::payload;
  if (fits && at != routes_.end()) {
    const auto [from, where] = at->second;
    if (where == in.where && from->sessions[static_cast<std::size_t>(where)].number == in.session)
      return from;
  }
  hub_counters::add(core_.counters.garbage);
  if (fits && at == routes_.end() && in.kind == link_kind::heartbeat) // it was dropped for silence
    refuse(route, in.session, "there is no such session", false);
  return nullptr;
}

/// What no session could have sent. Costs the sender its session.
void inbox::garbage(const std::string &route, const error &why) {
  hub_counters::add(core_.counters.garbage);
  log_.warn(fmt::format("a message that is not of this program: {}", why.message));
  if (const auto at = routes_.find(route); at != routes_.end())
    end(*at->second.first, at->second.second, why.message, false);
  else if (why.code == errc::unsupported)
    refuse(route, 0, why.message, true);
}

void inbox::take_request(const link_header &in, incoming parts) {
  const asker from{parts.route, in.request};
  const auto &self = core_.options.self;
  if (in.identity && in.identity->run != self.run)
    return reply(
        from, {},
        fmt::format("this is run '{}', it was asked about run '{}'", self.run, in.identity->run));
  if (parts.bytes > core_.options.limits.control_bytes)
    return reply(from, {}, fmt::format("a question of {} bytes is too long", parts.bytes));
  if (requests_.size() >= most_requests)
    return reply(from, {}, "too many questions wait for answers; ask again later");
  message question;
  for (auto &part : parts.parts)
    question.push_back(take_part(std::move(part), questions_));
  requests_.emplace(++last_request_, from);
  core_.listener.asked(last_request_, std::move(question));
}

void inbox::reply(const asker &to, const message &parts, const std::string &reason) {
  const link_header header{.kind = link_kind::reply, .reason = reason, .request = to.request};
  say(to.route, header, parts); // who has left needs no answer
}

void inbox::answer(request_id request, const message &parts) {
  const auto at = requests_.find(request);
  if (at == requests_.end())
    return;
  const auto &limits = core_.options.limits;
  const bool fits = parts.size() <= limits.parts &&
                    std::all_of(parts.begin(), parts.end(), [&limits](const frame &part) {
                      return part.size() <= limits.part_bytes;
                    });
  if (fits)
    reply(at->second, parts, {});
  else
    reply(at->second, {},
          fmt::format("the answer of {} bytes in {} parts is too long", bytes_of(parts),
                      parts.size()));
  requests_.erase(at);
}

void inbox::close(time now, std::chrono::milliseconds linger) {
  for (const auto &[id, who] : requests_)
    reply(who, {}, "the process ends");
  requests_.clear();
  for (auto &[name, from] : senders_)
    if (from.answer_by != time::max())
      send_answer(from, now);
  close(linger);
}

void inbox::set_hungry(bool hungry) noexcept {
  hungry_ = hungry;
  grant_due_ = true;
}

} // namespace millrace
