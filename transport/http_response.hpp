// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/result.hpp"

namespace millrace {

/// What stands at the head of an answer.
struct http_head {
  int status = 0;           ///< 200 to 999
  std::string content_type; ///< as it stands; empty if there is none
};

/// Who gets an answer as it comes. An error from either function ends it.
struct http_receiver {
  std::function<status(const http_head &)> head;
  std::function<status(std::string_view)> body;
};

/// Reads one HTTP/1.1 answer to a POST, whose bytes come in pieces of any size. It keeps the head,
/// at most most_head bytes, and nothing of the body. Source: RFC 9112; what it leaves open between
/// lenient and strict is refused. Errors: bad_format, unsupported (another transfer or content
/// coding), too_large (head, body), peer_lost (it ends before it is complete), those of the
/// receiver.
class http_response_reader {
public:
  static constexpr std::size_t most_head = std::size_t{32} << 10;

  /// @param most_body bytes of the body.
  explicit http_response_reader(std::uint64_t most_body) : most_body_(most_body) {}

  status feed(std::string_view bytes, const http_receiver &to);
  /// The server sends no more.
  status finish();
  /// The answer is complete: nothing may follow.
  bool complete() const noexcept { return part_ == part::nothing; }

private:
  enum class part : std::uint8_t {
    head,
    body_of_length,
    body_to_the_end,
    chunk_size,
    chunk,
    chunk_end,
    trailer,
    nothing
  };

  status take(std::string_view &bytes, const http_receiver &to);
  status take_line(std::string_view &bytes, const http_receiver &to);
  status take_body(std::string_view &bytes, const http_receiver &to);
  status line_ended(const http_receiver &to);
  status status_line();
  status field_line();
  status head_ended(const http_receiver &to);
  status size_line();

  const std::uint64_t most_body_;
  part part_ = part::head;
  std::string line_;          ///< under way
  std::size_t head_size_ = 0; ///< bytes of the head, or of the trailer
  http_head head_;            ///< status 0: its line has not come
  std::optional<std::uint64_t> length_;
  bool chunked_ = false;
  std::uint64_t left_ = 0; ///< of the body, or of the chunk
  std::uint64_t body_ = 0; ///< bytes that came
};

} // namespace millrace
