// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "actors/node/host_messages.hpp"

namespace millrace::test {

inline constexpr std::size_t host_parcel_kinds = std::variant_size_v<decltype(host_parcel::what)>;

/// Messages between processes with random content.
class host_parcel_maker {
public:
  explicit host_parcel_maker(std::uint64_t seed) : random_(seed) {}

  /// Precondition: kind < host_parcel_kinds.
  host_parcel make(std::size_t kind) {
    const auto makers = makers_of(std::make_index_sequence<host_parcel_kinds>());
    return (this->*makers.at(kind))();
  }

private:
  using alternatives = decltype(host_parcel::what);
  using maker = host_parcel (host_parcel_maker::*)();
  template <std::size_t... I>
  static std::array<maker, host_parcel_kinds> makers_of(std::index_sequence<I...>) {
    return {&host_parcel_maker::make_as<std::variant_alternative_t<I, alternatives>>...};
  }
  template <class Message> host_parcel make_as() { return {one(std::type_identity<Message>{})}; }

  std::uint64_t number() {
    const auto value = random_();
    return value >> (random_() % 64); // of every length
  }
  std::size_t pick(std::size_t low, std::size_t high) {
    return std::uniform_int_distribution<std::size_t>(low, high)(random_);
  }
  std::string text(std::size_t least = 0) {
    std::string out(pick(least, 40), ' ');
    for (auto &c : out)
      c = static_cast<char>(pick(0, 127));
    return out;
  }
  template <class T> std::vector<T> some() {
    std::vector<T> out;
    for (auto n = pick(0, 4); n > 0; --n)
      out.push_back(one(std::type_identity<T>{}));
    return out;
  }

  actor_entry one(std::type_identity<actor_entry>) {
    return {static_cast<role>(pick(0, static_cast<std::size_t>(role::host))), text(1)};
  }
  process_entry one(std::type_identity<process_entry>) {
    return {text(1),
            number(),
            text(),
            text(),
            some<actor_entry>(),
            static_cast<process_state>(pick(0, 3))};
  }
  wait_entry one(std::type_identity<wait_entry>) { return {text(), text(), text(), number()}; }
  counter_entry one(std::type_identity<counter_entry>) { return {text(), number()}; }
  process_status one(std::type_identity<process_status>) {
    return {text(),
            number(),
            text(),
            number(),
            number(),
            number(),
            number(),
            number(),
            number(),
            some<counter_entry>(),
            some<wait_entry>()};
  }
  process_alive one(std::type_identity<process_alive>) {
    return {one(std::type_identity<process_entry>{}), one(std::type_identity<process_status>{})};
  }
  directory_view one(std::type_identity<directory_view>) {
    return {number(), some<process_entry>()};
  }
  process_leaves one(std::type_identity<process_leaves>) { return {text(1), number()}; }
  drain_process one(std::type_identity<drain_process>) { return {}; }
  end_run one(std::type_identity<end_run>) { return {text(), pick(0, 1) == 1}; }
  process_lost one(std::type_identity<process_lost>) { return {text(1), number()}; }
  process_report one(std::type_identity<process_report>) { return {text(1), text()}; }
  status_question one(std::type_identity<status_question>) { return {}; }
  status_line one(std::type_identity<status_line>) {
    return {one(std::type_identity<process_entry>{}), one(std::type_identity<process_status>{}),
            number(), number()};
  }
  status_answer one(std::type_identity<status_answer>) { return {text(), some<status_line>()}; }
  drain_question one(std::type_identity<drain_question>) { return {text(1)}; }
  tool_answer one(std::type_identity<tool_answer>) { return {pick(0, 1) == 1, text()}; }
  feed_question one(std::type_identity<feed_question>) {
    return {small(),  small(),  small(), number() | 1, static_cast<feed_wish>(pick(0, 5)),
            number(), number(), small(), text()};
  }
  feed_answer one(std::type_identity<feed_answer>) {
    feed_answer out{static_cast<feed_state>(pick(0, 7)),
                    text(),
                    pick(0, 1) == 1,
                    number(),
                    number(),
                    {},
                    signed_number(),
                    signed_number(),
                    signed_number(),
                    small(),
                    text()};
    for (auto &byte : out.digest.bytes)
      byte = static_cast<std::uint8_t>(pick(0, 255));
    return out;
  }
  std::uint32_t small() { return static_cast<std::uint32_t>(number()); }
  std::int64_t signed_number() { return static_cast<std::int64_t>(number()); }

  std::mt19937_64 random_;
};

/// True if two messages say the same. A field that is added to a message and forgotten here does
/// not compile.
struct same_host_message {
  bool operator()(const process_alive &a, const process_alive &b) const {
    const auto &[entry, status] = a;
    return std::tie(entry, status) == std::tie(b.entry, b.status);
  }
  bool operator()(const directory_view &a, const directory_view &b) const {
    const auto &[directory, entries] = a;
    return std::tie(directory, entries) == std::tie(b.directory, b.entries);
  }
  bool operator()(const process_leaves &a, const process_leaves &b) const {
    const auto &[process, incarnation] = a;
    return std::tie(process, incarnation) == std::tie(b.process, b.incarnation);
  }
  bool operator()(const drain_process &, const drain_process &) const { return true; }
  bool operator()(const end_run &a, const end_run &b) const {
    const auto &[failure, restart] = a;
    return std::tie(failure, restart) == std::tie(b.failure, b.restart);
  }
  bool operator()(const process_lost &a, const process_lost &b) const {
    const auto &[process, incarnation] = a;
    return std::tie(process, incarnation) == std::tie(b.process, b.incarnation);
  }
  bool operator()(const process_report &a, const process_report &b) const {
    const auto &[process, json] = a;
    return std::tie(process, json) == std::tie(b.process, b.json);
  }
  bool operator()(const status_question &, const status_question &) const { return true; }
  bool operator()(const status_line &a, const status_line &b) const {
    const auto &[entry, status, age_ms, since_ms] = a;
    return std::tie(entry, status, age_ms, since_ms) ==
           std::tie(b.entry, b.status, b.age_ms, b.since_ms);
  }
  bool operator()(const status_answer &a, const status_answer &b) const {
    const auto &[run, processes] = a;
    return run == b.run && std::equal(processes.begin(), processes.end(), b.processes.begin(),
                                      b.processes.end(), *this);
  }
  bool operator()(const drain_question &a, const drain_question &b) const {
    const auto &[name] = a;
    return name == b.name;
  }
  bool operator()(const tool_answer &a, const tool_answer &b) const {
    const auto &[ok, text] = a;
    return std::tie(ok, text) == std::tie(b.ok, b.text);
  }
  bool operator()(const feed_question &a, const feed_question &b) const { return a == b; }
  bool operator()(const feed_answer &a, const feed_answer &b) const { return a == b; }
  template <class A, class B> bool operator()(const A &, const B &) const { return false; }
};

inline bool same(const host_parcel &a, const host_parcel &b) {
  return std::visit(same_host_message{}, a.what, b.what);
}

} // namespace millrace::test
