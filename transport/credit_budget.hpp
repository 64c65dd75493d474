// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace millrace {

/// Who may send how much to this process. Every sender gets credit ahead of its need, from at most
/// half of what is free; the rest goes to those whose next message needs more. Over the limit only
/// one message at a time is let in: of a sender of whose messages this process holds nothing (else
/// a message larger than what is ever free would wait for ever), or, while the run is hungry, of
/// any.
/// Knows no sockets. Thread: one. Unit: bytes; credit is absolute in a session.
class credit_budget {
public:
  using sender = std::uint64_t; ///< a data session

  /// @param limit bytes held above which nothing more is granted. @param window most that a sender
  /// gets ahead of its need.
  credit_budget(std::uint64_t limit, std::uint64_t window) noexcept
      : limit_(limit), window_(window) {}

  /// What a session had left when it ended, for the next one of the same sender: it has sent
  /// messages with that credit, and sends them again.
  struct rest {
    std::uint64_t unused = 0;
    std::uint64_t exception = 0; ///< of it: until a message over the limit has arrived
  };
  void add(sender who, rest carried);
  rest remove(sender who);

  /// A message of a sender arrived. @returns false if it had no credit for it.
  bool use(sender who, std::uint64_t bytes);
  /// The sender lacks credit: it would need so much. 0: it lacks none. More than a message can have
  /// is ignored.
  void want(sender who, std::uint64_t absolute);

  /// What the process holds, in all and of each sender.
  struct state {
    std::uint64_t held = 0;
    std::function<std::uint64_t(sender)> held_of;
    bool hungry = false;
  };
  /// Gives what can be given. @returns whose credit has grown.
  std::vector<sender> grant(const state &now);

  std::uint64_t credit(sender who) const;
  /// Some sender lacks credit.
  bool starving() const noexcept;
  /// Granted and not used.
  std::uint64_t granted() const noexcept { return granted_; }
  /// Granted over the limit since the run was hungry, in all.
  std::uint64_t over_limit() const noexcept { return over_limit_; }

private:
  struct account {
    std::uint64_t credit = 0, used = 0, wanted = 0;
    std::uint64_t exception = 0; ///< credit after the last grant over the limit: used up to there
                                 ///< means that that message has arrived
    std::uint64_t unused() const noexcept { return credit - used; }
  };
  enum class reason : std::uint8_t { none, room, alone, hunger };

  void raise(account &of, std::uint64_t credit) noexcept;
  bool exception_under_way() const noexcept;
  reason why_grant(sender who, const account &of, const state &now) const;

  const std::uint64_t limit_, window_;
  std::map<sender, account> accounts_;
  sender last_ = 0; ///< who was granted what it wanted last: the others come first
  std::uint64_t granted_ = 0, over_limit_ = 0;
};

} // namespace millrace
