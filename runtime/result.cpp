// SPDX-License-Identifier: Apache-2.0
#include "runtime/result.hpp"

#include <cstdio>
#include <cstdlib>

namespace millrace {

std::string_view to_string(errc code) noexcept {
  switch (code) {
  case errc::bad_argument:
    return "bad_argument";
  case errc::bad_config:
    return "bad_config";
  case errc::bad_format:
    return "bad_format";
  case errc::bad_value:
    return "bad_value";
  case errc::damaged:
    return "damaged";
  case errc::too_large:
    return "too_large";
  case errc::io:
    return "io";
  case errc::not_found:
    return "not_found";
  case errc::conflict:
    return "conflict";
  case errc::timed_out:
    return "timed_out";
  case errc::peer_lost:
    return "peer_lost";
  case errc::unsupported:
    return "unsupported";
  case errc::restart:
    return "restart";
  case errc::no_space:
    return "no_space";
  }
  return "unknown";
}

tl::unexpected<error> with_context(error why, std::string_view place) {
  why.message = fmt::format("{}: {}", place, why.message);
  return tl::unexpected<error>(std::move(why));
}

namespace detail {

void assertion_failed(const char *condition, const char *file, int line,
                      const std::string &values) {
  (void)std::fprintf(stderr, "millrace: a bug: %s:%d: %s does not hold: %s\n", file, line,
                     condition, values.c_str());
  std::abort();
}

} // namespace detail

} // namespace millrace
