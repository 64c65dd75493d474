// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "runtime/frame.hpp"
#include "runtime/result.hpp"
#include "transport/hub.hpp"

namespace millrace {

/// What part 0 of a message says it is. The numbers stand on the wire.
enum class link_kind : std::uint8_t {
  hello,     ///< first of a session: `session`, `where`, `identity`
  welcome,   ///< its answer: `identity`, and `received` of that lane; data: credit
  refusal,   ///< the session is over: `reason`, `for_good`
  heartbeat, ///< answers, and what is wanted
  payload,   ///< `session`, `number`, `id`; the parts after it are a message
  request,   ///< a question, needs no hello: `request`, and `identity` for its run (may be absent)
  reply      ///< its one answer: `request`; if `reason` is not empty, there is none for that reason
};

/// Part 0 of every message between processes (schema/link.fbs), as a value.
struct link_header {
  static constexpr std::uint16_t protocol = 1;

  link_kind kind = link_kind::heartbeat;
  lane where = lane::control;
  std::uint64_t session = 0; ///< chosen by who says hello
  std::uint64_t number = 0;  ///< payload: place in the session, from 1
  std::uint64_t id = 0;      ///< payload: place in the lane over all sessions, from 1
  bool asked_for = false;
  std::optional<process_identity> identity{};
  std::string reason{};
  bool for_good = false;
  std::uint64_t control_received = 0; ///< id of the last message of the lane that arrived
  std::uint64_t data_session = 0;     ///< which one the data_ fields are about; 0: none
  std::uint64_t data_received = 0;    ///< as control_received
  std::uint64_t data_credit = 0;      ///< bytes, absolute in data_session
  std::uint64_t data_wanted = 0;      ///< bytes, absolute in data_session; 0: nothing waits
  std::uint64_t request = 0;
};

/// @param parts how many follow it in the message.
frame encode(const link_header &header, std::size_t parts = 0);

/// Reads part 0 of a message from outside, wherever its bytes lie. @param parts how many came after
/// it. Errors: unsupported (another protocol version), too_large, bad_format, bad_value.
result<link_header> parse_link_header(std::span<const std::byte> bytes, std::size_t parts);

} // namespace millrace
