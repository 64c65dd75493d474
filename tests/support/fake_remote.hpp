// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "actors/interfaces.hpp"

namespace millrace::test {

/// Stands in for an actor of another process: keeps what is sent to it, and has as much room as a
/// test says.
class fake_remote final : public remote_peer {
public:
  void send(parcel what) override { parcels.push_back(std::move(what)); }
  bool can_take() const override { return takes; }
  std::int64_t room() const override { return room_left; }

  /// What came of this kind, in order.
  template <class Message> std::vector<Message> got() const {
    std::vector<Message> out;
    for (const auto &each : parcels)
      if (const auto *one = std::get_if<Message>(&each.what))
        out.push_back(*one);
    return out;
  }

  std::vector<parcel> parcels;
  bool takes = true;
  std::int64_t room_left = 1 << 20; ///< bytes
};

/// A remote peer and what stands behind it.
struct remote_stand_in {
  explicit remote_stand_in(std::string name, std::uint64_t incarnation = 1)
      : who(peer_id{std::move(name), incarnation}, behind) {}

  std::shared_ptr<fake_remote> behind = std::make_shared<fake_remote>();
  peer who;

  template <class Message> std::vector<Message> got() const { return behind->got<Message>(); }
};

} // namespace millrace::test
