// SPDX-License-Identifier: Apache-2.0
#include "transport/endpoint.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace millrace {
namespace {

constexpr std::string_view tcp_prefix = "tcp://";
constexpr std::string_view ipc_prefix = "ipc://";
/// The path and a zero byte must fit.
constexpr std::size_t longest_ipc_path = sizeof(sockaddr_un::sun_path) - 1;
constexpr std::size_t longest_name = 253;

bool is_ipv4(const std::string &host) {
  in_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1;
}

std::optional<in6_addr> ipv6_of(const std::string &host) {
  in6_addr address{};
  if (::inet_pton(AF_INET6, host.c_str(), &address) != 1)
    return std::nullopt;
  return address;
}

bool is_loopback(const in_addr &address) { return (ntohl(address.s_addr) >> 24) == 127; }

bool is_loopback(const in6_addr &address) {
  if (IN6_IS_ADDR_V4MAPPED(&address))
    return address.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&address);
}

bool is_loopback(const sockaddr &address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    return is_loopback(v4.sin_addr);
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address, sizeof v6);
  return is_loopback(v6.sin6_addr);
}

/// Precondition: an internet address.
std::string text_of(const sockaddr &address) {
  char text[NI_MAXHOST] = "";
  const auto size = address.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (::getnameinfo(&address, static_cast<socklen_t>(size), text, sizeof text, nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return "";
  return text;
}

/// Calls `visit` with every internet address of a name.
template <class Visit> void resolve(const std::string &name, Visit visit) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo *found = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0)
    return;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  for (const addrinfo *each = found; each != nullptr; each = each->ai_next)
    if (each->ai_family == AF_INET || each->ai_family == AF_INET6)
      visit(*each->ai_addr);
}

bool is_name(std::string_view host) {
  return !host.empty() && host.size() <= longest_name && host.front() != '-' &&
         std::all_of(host.begin(), host.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' ||
                  c == '_';
         });
}

/// Digits and dots alone can only have been meant as an address.
bool looks_like_ipv4(std::string_view host) {
  return host.find_first_not_of("0123456789.") == std::string_view::npos;
}

/// A host without a port; an IPv6 address with or without brackets. Nothing if it is none.
std::optional<std::string> host_of(std::string_view text) {
  const bool brackets = text.starts_with('[') && text.ends_with(']') && text.size() > 2;
  std::string host(brackets ? text.substr(1, text.size() - 2) : text);
  if (ipv6_of(host))
    return host;
  if (brackets)
    return std::nullopt;
  if (host == "*")
    return "0.0.0.0";
  if (is_ipv4(host) || (is_name(host) && !looks_like_ipv4(host)))
    return host;
  return std::nullopt;
}

std::optional<std::uint16_t> port_of(std::string_view text) {
  if (text == "*")
    return 0;
  std::uint16_t port = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (problem != std::errc{} || end != text.data() + text.size() || port == 0)
    return std::nullopt;
  return port;
}

result<endpoint> parse_tcp(std::string_view text) {
  const std::string_view rest = text.substr(tcp_prefix.size());
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos || rest.ends_with(']'))
    return fail(errc::bad_argument, "endpoint '{}' has no port; write {}:PORT, or * for a free one",
                text, text);
  const std::string_view written = rest.substr(0, colon);
  if (!written.starts_with('[') && written.find(':') != std::string_view::npos)
    return fail(errc::bad_argument,
                "endpoint '{}': an IPv6 address stands in brackets, as in tcp://[::1]:7070", text);
  auto host = host_of(written);
  if (!host)
    return fail(errc::bad_argument, "endpoint '{}': '{}' is neither an address nor a host name",
                text, written);
  const auto port = port_of(rest.substr(colon + 1));
  if (!port)
    return fail(errc::bad_argument, "endpoint '{}': a port is 1 to 65535, or * for a free one",
                text);
  return endpoint{endpoint::protocol::tcp, *std::move(host), *port, ""};
}

result<endpoint> parse_ipc(std::string_view text) {
  const std::string_view path = text.substr(ipc_prefix.size());
  if (path.empty() || path == "*" || path.front() == '@' || path.ends_with('/'))
    return fail(errc::bad_argument, "endpoint '{}': the path of a socket file is wanted", text);
  if (path.size() > longest_ipc_path)
    return fail(errc::bad_argument,
                "endpoint '{}': the path has {} bytes, the system takes {}; choose a shorter "
                "folder",
                text, path.size(), longest_ipc_path);
  return endpoint{endpoint::protocol::ipc, "", 0, std::string(path)};
}

std::vector<std::string> addresses_of_machine_name() {
  std::vector<std::string> out;
  char name[longest_name + 2] = "";
  if (::gethostname(name, sizeof name - 1) == 0)
    resolve(name, [&out](const sockaddr &address) { out.push_back(text_of(address)); });
  return out;
}

/// Addresses that mean something on one link only.
bool is_link_local(const sockaddr &address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    return (ntohl(v4.sin_addr.s_addr) >> 16) == 0xa9fe;
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address, sizeof v6);
  return IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr);
}

result<endpoint> with_host(const endpoint &bound, std::string_view advertise) {
  const auto host = host_of(advertise);
  endpoint out = bound;
  if (host)
    out.host = *host;
  if (!host || out.is_wildcard())
    return fail(errc::bad_argument,
                "link.advertise: '{}' is not a host that others can reach; an address or a name "
                "is wanted, without a port",
                advertise);
  return out;
}

} // namespace

result<endpoint> endpoint::parse(std::string_view text) {
  if (std::any_of(text.begin(), text.end(),
                  [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; }))
    return fail(errc::bad_argument, "an endpoint holds a control character");
  if (text.starts_with(tcp_prefix))
    return parse_tcp(text);
  if (text.starts_with(ipc_prefix))
    return parse_ipc(text);
  return fail(errc::bad_argument, "'{}' is no endpoint; tcp://HOST:PORT or ipc://PATH is wanted",
              text);
}

std::string endpoint::text() const {
  if (is_ipc())
    return fmt::format("{}{}", ipc_prefix, path);
  const std::string number = port == 0 ? "*" : fmt::format("{}", port);
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}:{}", tcp_prefix, v6 ? fmt::format("[{}]", host) : host, number);
}

bool endpoint::is_wildcard() const {
  if (is_ipc())
    return false;
  const auto v6 = ipv6_of(host);
  return host == "0.0.0.0" || (v6 && IN6_IS_ADDR_UNSPECIFIED(&*v6));
}

bool endpoint::wants_ipv6() const { return !is_ipc() && !is_ipv4(host); }

bool endpoint::is_local() const {
  if (is_ipc())
    return true;
  bool any = false;
  bool all = true;
  resolve(host, [&](const sockaddr &address) {
    any = true;
    all = all && is_loopback(address);
  });
  return any && all;
}

std::vector<interface_address> reachable_addresses() {
  std::vector<interface_address> out;
  ifaddrs *found = nullptr;
  if (::getifaddrs(&found) != 0)
    return out;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(found, &::freeifaddrs);
  for (const ifaddrs *each = found; each != nullptr; each = each->ifa_next) {
    const sockaddr *address = each->ifa_addr;
    if (address == nullptr || (each->ifa_flags & IFF_UP) == 0 ||
        (address->sa_family != AF_INET && address->sa_family != AF_INET6) ||
        is_loopback(*address) || is_link_local(*address))
      continue;
    out.push_back({text_of(*address), address->sa_family == AF_INET6});
  }
  return out;
}

result<std::string> choose_address(std::span<const interface_address> own,
                                   std::span<const std::string> of_name, bool ipv6) {
  const auto named = [of_name](const interface_address &each) {
    return std::find(of_name.begin(), of_name.end(), each.address) != of_name.end();
  };
  const interface_address *best = nullptr;
  const auto rank = [&](const interface_address &each) {
    return (each.ipv6 == ipv6 ? 2 : 0) + (named(each) ? 1 : 0);
  };
  for (const interface_address &each : own)
    if ((!each.ipv6 || ipv6) && (best == nullptr || rank(each) > rank(*best)))
      best = &each;
  if (best == nullptr)
    return fail(errc::not_found,
                "this machine has no {} address that others can reach; set "
                "link.advertise to the host they should use",
                ipv6 ? "network" : "IPv4");
  return best->address;
}

result<endpoint> advertised(const endpoint &bound, std::string_view advertise) {
  endpoint out = bound;
  if (bound.is_ipc()) {
    std::error_code problem;
    const auto absolute = std::filesystem::absolute(bound.path, problem);
    if (problem)
      return fail(errc::io, "{}: {}", bound.text(), problem.message());
    return endpoint::parse(fmt::format("{}{}", ipc_prefix, absolute.lexically_normal().string()));
  }
  if (!advertise.empty())
    return with_host(bound, advertise);
  if (!bound.is_wildcard())
    return out;
  auto host = choose_address(reachable_addresses(), addresses_of_machine_name(),
                             bound.host.find(':') != std::string::npos);
  if (!host)
    return with_context(std::move(host).error(), bound.text());
  out.host = *std::move(host);
  return out;
}

} // namespace millrace
