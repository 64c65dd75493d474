// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <tl/expected.hpp>

namespace millrace {

/// What kind of failure it was. Append-only: the numbers stand in logs and quarantine files.
enum class errc : std::uint16_t {
  bad_argument = 1, ///< a caller or a user asked for something that cannot be
  bad_config = 2,   ///< a config key is unknown, of the wrong type or out of range
  bad_format = 3,   ///< bytes that are not what their place promises (identifier, structure, JSON)
  bad_value = 4,  ///< well-formed, but breaks a rule of the domain (mask length, parent, id range)
  damaged = 5,    ///< a checksum or a header of a recording does not fit its bytes
  too_large = 6,  ///< over a size limit that is fixed in schema/limits.hpp or the config
  io = 7,         ///< the operating system refused: open, read, write, map
  not_found = 8,  ///< a file, a key, an episode that is not there
  conflict = 9,   ///< two parties that must agree do not (group size, step digest, counts)
  timed_out = 10, ///< a deadline passed
  peer_lost = 11, ///< an actor or a rank that was waited for is gone
  unsupported = 12, ///< known, but not something that this build or this input can do
  restart = 13,     ///< the process must be started again, then its work goes on
  no_space = 14,    ///< a disk, a quota or a file size limit is full: what was not written can be
                    ///< tried again
};

/// The name of a code as messages show it, for example "bad_value".
std::string_view to_string(errc code) noexcept;

/// An expected failure: its kind and one line of context with values (what, where, what to do).
struct error {
  errc code;
  std::string message;
};

/// A value, or why there is none. We do not throw: a caller must look.
template <class T> using result = tl::expected<T, error>;
using status = result<void>;

/// fail(errc::bad_value, "node {}: ...", i) as a return value of any function that returns a
/// result.
template <class... Args>
[[nodiscard]] tl::unexpected<error> fail(errc code, fmt::format_string<Args...> format,
                                         Args &&...args) {
  return tl::unexpected<error>(error{code, fmt::format(format, std::forward<Args>(args)...)});
}

/// The same error with a place put before its message: "FILE: line 3: ...".
[[nodiscard]] tl::unexpected<error> with_context(error why, std::string_view place);

namespace detail {
[[noreturn]] void assertion_failed(const char *condition, const char *file, int line,
                                   const std::string &values);
} // namespace detail

} // namespace millrace

/// A bug if false: prints the values and ends the process, in release builds too. The arguments
/// after the condition are a format string and its values.
#define MILLRACE_ASSERT(condition, ...)                                                            \
  do {                                                                                             \
    if (!(condition)) [[unlikely]]                                                                 \
      ::millrace::detail::assertion_failed(#condition, __FILE__, __LINE__,                         \
                                           ::fmt::format(__VA_ARGS__));                            \
  } while (false)

/// Leaves the enclosing function with the error of `expression`, a result whose value is not
/// needed.
#define MILLRACE_TRY(expression)                                                                   \
  do {                                                                                             \
    if (auto millrace_try_result = (expression); !millrace_try_result) [[unlikely]]                \
      return ::tl::unexpected<::millrace::error>(std::move(millrace_try_result).error());          \
  } while (false)
