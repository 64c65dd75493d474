// SPDX-License-Identifier: Apache-2.0
#include "bench/bare_chain.hpp"

#include <utility>

#include "transport/parts.hpp"

namespace millrace::bench {

namespace {

zmq::socket_t open(zmq::context_t &context, zmq::socket_type type) {
  zmq::socket_t socket(context, type);
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::sndhwm, 0);
  socket.set(zmq::sockopt::rcvhwm, 0);
  return socket;
}

} // namespace

result<std::unique_ptr<bare_chain>> bare_chain::start(const std::vector<std::string> &binds) try {
  std::unique_ptr<bare_chain> made(new bare_chain);
  made->nodes_.push_back(std::make_unique<node>());
  for (const auto &bind : binds) {
    made->nodes_.push_back(std::make_unique<node>());
    made->join(**(made->nodes_.end() - 2), *made->nodes_.back(), bind);
  }
  for (auto &one : made->nodes_)
    if (one != made->nodes_.front())
      one->runs = std::thread([chain = made.get(), here = one.get()] { chain->pass_on(*here); });
  return made;
} catch (const zmq::error_t &why) {
  return fail(errc::io, "no bare chain: {}", why.what());
}

void bare_chain::join(node &from, node &to, const std::string &bind) {
  to.in = open(to.context, zmq::socket_type::router);
  to.in.bind(bind);
  from.out = open(from.context, zmq::socket_type::dealer);
  from.out.connect(to.in.get(zmq::sockopt::last_endpoint));
}

/// Until an empty message comes, which is passed on too.
void bare_chain::pass_on(node &here) {
  zmq::message_t route, body;
  for (bool more = true; more;) {
    static_cast<void>(here.in.recv(route));
    static_cast<void>(here.in.recv(body));
    more = body.size() != 0;
    if (here.out)
      here.out.send(std::move(body), zmq::send_flags::none);
    else if (more)
      arrived_.add();
    body.rebuild();
  }
}

void bare_chain::run(const load &what) {
  arrived_.expect(what.count);
  for (std::size_t i = 0; i < what.count; ++i)
    nodes_.front()->out.send(lend_part(what.message(i)), zmq::send_flags::none);
  arrived_.wait();
}

bare_chain::~bare_chain() {
  if (nodes_.empty() || !nodes_.back()->runs.joinable())
    return;
  nodes_.front()->out.send(zmq::message_t(), zmq::send_flags::none);
  for (auto &one : nodes_)
    if (one->runs.joinable())
      one->runs.join();
}

} // namespace millrace::bench
