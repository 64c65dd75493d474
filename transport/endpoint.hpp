// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.hpp"

namespace millrace {

/// Where a process binds or is reached: "tcp://127.0.0.1:7070", "tcp://[::1]:*",
/// "tcp://node-7:7070", "tcp://*:7070", "ipc:///run/x.sock".
struct endpoint {
  enum class protocol : std::uint8_t { tcp, ipc };

  protocol how = protocol::tcp;
  std::string host;       ///< tcp: IPv4, IPv6 without brackets, or a name; "*" becomes "0.0.0.0"
  std::uint16_t port = 0; ///< tcp; 0: "*", a free one is bound
  std::string path;       ///< ipc: of the socket file

  /// Errors: bad_argument with the text and what is wrong with it.
  static result<endpoint> parse(std::string_view text);

  /// As libzmq takes it; parse() gives the same endpoint again.
  std::string text() const;

  bool is_ipc() const noexcept { return how == protocol::ipc; }
  /// All addresses of the machine: can be bound, and not be reached.
  bool is_wildcard() const;
  /// libzmq must be told (ZMQ_IPV6) before it takes such a host: IPv6, or a name that may be one.
  bool wants_ipv6() const;
  /// Only this machine can reach it: ipc, a loopback address, or a name all of whose addresses are
  /// loopback (asks the resolver, may block). A name that has no address is not local.
  bool is_local() const;

  bool operator==(const endpoint &) const = default;
};

/// An address of this machine, as text.
struct interface_address {
  std::string address;
  bool ipv6 = false;
};

/// Addresses of interfaces that are up and that others may reach: no loopback, none that holds on
/// one link only (169.254/16, fe80::/10), in the order of the system.
std::vector<interface_address> reachable_addresses();

/// The one of `own` that others should use: one that the machine's name stands for too, else the
/// first. @param ipv6 that family first, then the other; false: IPv4 only.
/// @param of_name addresses that the machine's name resolves to. Errors: not_found.
result<std::string> choose_address(std::span<const interface_address> own,
                                   std::span<const std::string> of_name, bool ipv6);

/// The endpoint under which others reach a process that has bound `bound` (with its real port).
/// @param advertise key link.advertise: a host in place of the bound one; empty: that of `bound`,
/// or one of the machine if that is a wildcard. Never loopback by accident; ipc paths become
/// absolute. Errors: bad_argument (`advertise` is no host), not_found (the machine has no address
/// to give).
result<endpoint> advertised(const endpoint &bound, std::string_view advertise);

} // namespace millrace
