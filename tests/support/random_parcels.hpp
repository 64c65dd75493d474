// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "actors/interfaces.hpp"

namespace millrace::test {

inline constexpr std::size_t parcel_kinds = std::variant_size_v<decltype(parcel::what)>;

/// Stands for an actor of another process; nothing is sent to it.
peer some_peer(const peer_id &id);

/// Messages between actors with random content, bodies included.
class parcel_maker {
public:
  explicit parcel_maker(std::uint64_t seed) : random_(seed) {}

  /// Precondition: kind < parcel_kinds.
  parcel make(std::size_t kind);

private:
  friend struct parcel_makers;

  std::uint64_t number();
  std::uint32_t number32() { return static_cast<std::uint32_t>(number()); }
  std::size_t pick(std::size_t low, std::size_t high);
  std::string text(std::size_t most = 40);
  std::vector<std::uint8_t> bytes();
  digest128 digest();
  group_ref group() { return {number(), number32()}; }
  std::vector<group_ref> groups();
  bin_ref bin() { return {number(), number32(), number32(), claim()}; }
  planner_moment moment() { return {number(), number()}; }
  planner_claim claim() { return {digest(), number()}; }
  std::shared_ptr<const group_info> info();
  std::uint32_t member() { return number32() % 1000; }
  peer who();
  sealed_episode episode();
  frame header();
  frame annotations();

  std::mt19937_64 random_;
};

/// Everything that a message holds as text: numbers, names, ids of peers, and for each frame its
/// address and size. Two messages with the same text are the same message.
std::string text_of(const parcel &what);

/// All frames that a message carries, in the order in which they go.
message frames_of(const parcel &what);

} // namespace millrace::test
