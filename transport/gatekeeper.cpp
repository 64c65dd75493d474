// SPDX-License-Identifier: Apache-2.0
#include "transport/gatekeeper.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

namespace {

/// A raw public key as Z85; empty if it is none.
std::string z85(const zmq::message_t &raw) {
  if (raw.size() != 32)
    return {};
  std::array<char, 41> text{};
  return zmq_z85_encode(text.data(), raw.data<std::uint8_t>(), raw.size()) == nullptr
             ? std::string()
             : std::string(text.data());
}

} // namespace

result<gatekeeper> gatekeeper::open(zmq::context_t &context) try {
  zmq::socket_t socket(context, zmq::socket_type::rep);
  socket.set(zmq::sockopt::linger, 0);
  socket.bind("inproc://zeromq.zap.01");
  return gatekeeper(std::move(socket));
} catch (const zmq::error_t &why) {
  return fail(errc::io, "no socket for the allow-list: {}", why.what());
}

// A question: version, request id, domain, address, routing id, mechanism, then for CURVE the key.
void gatekeeper::answer(const curve_config &config) {
  for (;;) {
    std::vector<zmq::message_t> question;
    do {
      question.emplace_back();
      if (zmq_msg_recv(question.back().handle(), socket_.handle(), ZMQ_DONTWAIT) < 0)
        return;
    } while (question.back().more());
    const bool curve = question.size() == 7 && question[5].to_string() == "CURVE";
    const auto key = curve ? z85(question[6]) : std::string();
    const bool in = !key.empty() && find_key(config, key) != nullptr;
    const auto request = question.size() > 1 ? question[1].to_string() : std::string();
    const std::array<std::string, 6> reply{
        "1.0", request, in ? "200" : "400", in ? "OK" : "unknown key", in ? key : "", ""};
    for (std::size_t i = 0; i < reply.size(); ++i)
      zmq_send(socket_.handle(), reply[i].data(), reply[i].size(),
               ZMQ_DONTWAIT | (i + 1 < reply.size() ? ZMQ_SNDMORE : 0));
  }
}

std::string key_of(const zmq::message_t &part) {
  const char *key = zmq_msg_gets(part.handle(), "User-Id");
  return key == nullptr ? std::string() : std::string(key);
}

} // namespace millrace
