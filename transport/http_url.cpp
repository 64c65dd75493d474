// SPDX-License-Identifier: Apache-2.0
#include "transport/http_url.hpp"

#include <algorithm>
#include <charconv>

namespace millrace {

namespace {

constexpr std::string_view scheme = "http://";

bool is_word(std::string_view text, std::string_view also) {
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           also.find(c) != std::string_view::npos;
  });
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

status read_port(std::string_view text, std::string_view whole, std::uint16_t &port) {
  const auto *end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, port);
  if (read.ec != std::errc{} || read.ptr != end || port == 0)
    return fail(errc::bad_argument, "'{}': '{}' is not a port from 1 to 65535", whole, text);
  return {};
}

/// "HOST", "HOST:PORT", "[IPV6]:PORT".
status read_authority(std::string_view text, std::string_view whole, http_url &out) {
  std::string_view port;
  bool has_port = false;
  if (!text.empty() && text.front() == '[') {
    const auto end = text.find(']');
    if (end == std::string_view::npos || !is_word(text.substr(1, end - 1), ":.%"))
      return fail(errc::bad_argument, "'{}': no IPv6 address in the brackets", whole);
    out.host = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    has_port = !text.empty();
    if (has_port && text.front() != ':')
      return fail(errc::bad_argument, "'{}': ':PORT' must follow the brackets", whole);
    port = text.substr(has_port ? 1 : 0);
  } else {
    const auto colon = text.find(':');
    has_port = colon != std::string_view::npos;
    out.host = text.substr(0, colon);
    port = has_port ? text.substr(colon + 1) : std::string_view();
    if (!is_word(out.host, ".-_"))
      return fail(errc::bad_argument, "'{}': '{}' is not a host; write http://HOST:PORT", whole,
                  out.host);
  }
  return has_port ? read_port(port, whole, out.port) : status();
}

} // namespace

result<http_url> http_url::parse(std::string_view text) {
  if (text.substr(0, 8) == "https://")
    return fail(errc::unsupported,
                "'{}': https is not supported; use http within a trusted network, or a proxy on "
                "this host that speaks https to the server",
                text);
  if (text.substr(0, scheme.size()) != scheme)
    return fail(errc::bad_argument, "'{}' is not a URL; write http://HOST:PORT", text);
  const auto rest = text.substr(scheme.size());
  const auto slash = std::min(rest.find('/'), rest.size());
  http_url out;
  MILLRACE_TRY(read_authority(rest.substr(0, slash), text, out));
  auto prefix = rest.substr(slash);
  const auto drop = [&](std::string_view end) {
    if (ends_with(prefix, end))
      prefix.remove_suffix(end.size());
  };
  drop("/");
  drop("/v1");
  if (!prefix.empty() && !is_word(prefix, "/-._~"))
    return fail(errc::bad_argument,
                "'{}': a path of letters, digits and '/-._~' may follow the host, nothing else",
                text);
  out.prefix = prefix;
  return out;
}

std::string http_url::authority() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

} // namespace millrace
