// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.hpp"

namespace millrace::json {

/// A key, a text or a number of a streamed text is handed on to this length. Unit: bytes.
inline constexpr std::size_t most_piece = 4096;

/// One piece of a text that is read as it comes.
struct piece {
  enum class kind : std::uint8_t {
    begin_object,
    end_object,
    begin_array,
    end_array,
    key,
    text,
    number,
    boolean,
    null
  };
  kind what = kind::null;
  /// Of a key, a text, a number, or "true" and "false": as it stands in the text, escapes and all.
  /// A key or a text that is longer than most_piece is cut there; no name is that long.
  std::string_view text;
};

/// Reads one JSON value whose bytes come in pieces of any size, and keeps none of it but the piece
/// under way and a bit for each level: for answers from a network that are larger than what is
/// wanted of them. What it takes is JSON by RFC 8259, nested at most max_depth deep; whether texts
/// are UTF-8 and numbers fit a type is left to who wants them. A number longer than most_piece is
/// refused. Errors, with the byte: bad_format, and those of `take`; after one, each call gives it
/// again.
class stream_reader {
public:
  /// Gets the pieces in their order. An error from it ends the reading.
  using taker = std::function<status(const piece &)>;

  explicit stream_reader(taker take) : take_(std::move(take)) {}

  status feed(std::string_view bytes);
  /// After the last byte: whether that was a whole value.
  status finish();
  /// The value has ended; only space may follow.
  bool complete() const noexcept { return expect_ == expect::nothing; }

private:
  enum class expect : std::uint8_t {
    value,
    value_or_end,
    key,
    key_or_end,
    colon,
    comma_or_end,
    nothing
  };
  enum class mode : std::uint8_t { between, string, escape, hex, scalar };

  status fed(std::string_view bytes);
  status take_one(char c);
  status structural(char c);
  status begin_value(char c);
  status close(char c);
  status in_string(char c);
  status in_escape(char c);
  status end_string();
  status end_scalar();
  status give(piece::kind what, std::string_view text = {});
  void after_value() { expect_ = stack_.empty() ? expect::nothing : expect::comma_or_end; }
  void keep(char c) {
    if (token_.size() < most_piece)
      token_ += c;
  }
  template <class... Args>
  tl::unexpected<error> bad(fmt::format_string<Args...> format, Args &&...args) const {
    return fail(errc::bad_format, "{} (byte {})", fmt::format(format, std::forward<Args>(args)...),
                at_);
  }

  taker take_;
  std::uint64_t at_ = 0; ///< of the byte under way
  mode mode_ = mode::between;
  expect expect_ = expect::value;
  std::vector<bool> stack_; ///< for each level, whether it is an object
  std::string token_;
  int hex_digits_ = 0;
  status failed_;
};

} // namespace millrace::json
