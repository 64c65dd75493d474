// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "actors/interfaces.hpp"
#include "transport/hub.hpp"

namespace millrace {

/// A message as it goes between processes. Part 0 is an ActorEnvelope: to whom, which message, its
/// fields; bodies and raw parts that it carries follow untouched.
struct encoded_parcel {
  message parts;
  lane where = lane::data;
  bool asked_for = false; ///< an answer to a question that was its credit
};

/// "group_scored" and so on, for messages and metrics.
std::string_view name_of(const parcel &what) noexcept;

/// Turns a message into parts. Copies nothing that is in a frame. A control message whose envelope
/// is over link_limits::control_bytes goes on the data lane; so does source_ended always, which
/// must stay behind the episodes. Text for people is cut at limits::text_bytes. Episodes that are
/// more parts than a message may have become the `problem` of their answer.
/// @param to name of the actor in the other process. Precondition: every peer in it has an id.
encoded_parcel encode(const parcel &what, std::string_view to);

struct decoded_parcel {
  std::string to;
  parcel what;
};

/// Gives the peer of an id that came in a message.
using peer_resolver = std::function<peer(const peer_id &)>;

/// The opposite. Bytes are hostile: structure is verified (parse, episode_frame::parse and so on),
/// elements are not (the door has checked them). What is aligned is not copied. Errors: bad_format,
/// bad_value, too_large, not_found (`peers` knows nobody of that name), with the name of the
/// message and the field.
result<decoded_parcel> decode(message parts, const peer_resolver &peers,
                              const std::shared_ptr<memory_meter> &meter = nullptr);

} // namespace millrace
