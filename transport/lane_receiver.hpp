// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

/// The receiving side of one lane: tells what is new from what came again, and notices what is
/// missing. Lives as long as the peer's incarnation, over any number of sessions.
/// Knows no sockets. Thread: one.
class lane_receiver {
public:
  enum class verdict : std::uint8_t {
    deliver, ///< the next message of the lane
    repeat,  ///< it was delivered in an earlier session: drop it
    hole     ///< something before it is missing: the session is over
  };

  void begin_session() noexcept { number_ = 0; }

  /// What a message is. @param number place in the session. @param id place in the lane.
  verdict judge(std::uint64_t number, std::uint64_t id) const noexcept {
    if (number != number_ + 1 || id > delivered_ + 1)
      return verdict::hole;
    return id <= delivered_ ? verdict::repeat : verdict::deliver;
  }
  /// Takes it. Precondition: it is no hole.
  void take(std::uint64_t id) noexcept {
    ++number_;
    delivered_ = id > delivered_ ? id : delivered_;
  }

  /// The id of the last message that was delivered; all before it were.
  std::uint64_t delivered() const noexcept { return delivered_; }

private:
  std::uint64_t number_ = 0;
  std::uint64_t delivered_ = 0;
};

} // namespace millrace
