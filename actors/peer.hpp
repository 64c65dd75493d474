// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "runtime/caf.hpp"

namespace millrace {

/// What an actor does in a run. The names stand in configs, on the command line and on the wire:
/// append only.
enum class role : std::uint8_t {
  directory,
  env_reader,
  assembler,
  scorer,
  planner,
  packer,
  trainer, ///< feeder and trainer of one rank
  host     ///< a process itself: starts, stops and reports its actors
};

/// "env-reader" and so on.
std::string_view to_string(role what) noexcept;
std::optional<role> role_of(std::string_view name) noexcept;

/// Names an actor in the whole run. Incarnation 0: whichever is there under that name.
struct peer_id {
  std::string name; ///< "scorer-1"
  std::uint64_t incarnation = 0;

  auto operator<=>(const peer_id &) const = default;
  bool operator==(const peer_id &) const = default;
};

/// The number that a name ends with: 2 of "env-reader-2".
std::optional<std::uint32_t> number_in(std::string_view name) noexcept;

struct parcel;

/// The way to an actor of another process. Thread: any.
class remote_peer {
public:
  virtual ~remote_peer() = default;
  /// In the order of the calls, once, as long as that incarnation lives; never blocks.
  virtual void send(parcel what) = 0;
  /// False while a message would wait behind others for credit: a source that could send without
  /// end waits for `room_came`.
  virtual bool can_take() const = 0;
  /// Unit: bytes. Credit left; to pick the peer with the most.
  virtual std::int64_t room() const = 0;
};

/// An actor that one can send to, here or in another process. A value: cheap to copy and compare.
class peer {
public:
  peer() = default;
  /// An actor of this process.
  peer(caf::actor local) : local_(std::move(local)) {} // NOLINT: an actor is a peer
  peer(peer_id id, caf::actor local) : id_(std::move(id)), local_(std::move(local)) {}
  peer(peer_id id, std::shared_ptr<remote_peer> remote)
      : id_(std::move(id)), remote_(std::move(remote)) {}

  const peer_id &id() const noexcept { return id_; }
  const caf::actor &local() const noexcept { return local_; }
  explicit operator bool() const noexcept { return local_ || remote_; }

  /// Precondition: *this is an actor.
  template <class Message> void send(Message what) const;
  bool can_take() const { return !remote_ || remote_->can_take(); }
  std::int64_t room() const { return remote_ ? remote_->room() : INT64_MAX; }

  friend bool operator==(const peer &a, const peer &b) noexcept { return a.rank() == b.rank(); }
  friend auto operator<=>(const peer &a, const peer &b) noexcept { return a.rank() <=> b.rank(); }

private:
  std::tuple<const peer_id &, caf::actor_id> rank() const noexcept {
    return {id_, local_ ? local_->id() : 0};
  }

  peer_id id_;
  caf::actor local_;
  std::shared_ptr<remote_peer> remote_;
};

/// How others address this actor.
inline peer self_of(stage_actor &self) {
  return {{self.name(), self.context().incarnation}, caf::actor(&self)};
}

} // namespace millrace
