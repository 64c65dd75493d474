// SPDX-License-Identifier: Apache-2.0
#include "runtime/json_stream.hpp"

#include <utility>

#include "runtime/json.hpp"
#include "runtime/json_scan.hpp"

namespace millrace::json {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// One byte of the text, for a message.
std::string shown(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7f ? fmt::format("'{}'", c) : fmt::format("byte {:#04x}", byte);
}

} // namespace

status stream_reader::feed(std::string_view bytes) {
  if (failed_)
    failed_ = fed(bytes);
  return failed_;
}

status stream_reader::finish() {
  if (failed_ && mode_ == mode::scalar)
    failed_ = end_scalar();
  if (failed_ && !complete())
    failed_ = stack_.empty() && mode_ == mode::between ? bad("there is no value")
                                                       : bad("the text ends inside a value");
  return failed_;
}

status stream_reader::fed(std::string_view bytes) {
  for (const char c : bytes) {
    MILLRACE_TRY(take_one(c));
    ++at_;
  }
  return {};
}

status stream_reader::take_one(char c) {
  switch (mode_) {
  case mode::string:
    return in_string(c);
  case mode::escape:
  case mode::hex:
    return in_escape(c);
  case mode::scalar:
    if (is_scalar(c)) {
      if (token_.size() == most_piece)
        return bad("a number of more than {} bytes", most_piece);
      token_ += c;
      return {};
    }
    MILLRACE_TRY(end_scalar());
    break;
  case mode::between:
    break;
  }
  return is_space(c) ? status() : structural(c);
}

status stream_reader::structural(char c) {
  switch (expect_) {
  case expect::nothing:
    return bad("{} follows the end of the value", shown(c));
  case expect::colon:
    if (c != ':')
      return bad("{} where ':' should be", shown(c));
    expect_ = expect::value;
    return {};
  case expect::comma_or_end:
    if (c != ',')
      return close(c);
    expect_ = stack_.back() ? expect::key : expect::value;
    return {};
  case expect::key:
  case expect::key_or_end:
    if (c == '}' && expect_ == expect::key_or_end)
      return close(c);
    if (c != '"')
      return bad("{} where a field name should be", shown(c));
    return begin_value(c);
  case expect::value_or_end:
    if (c == ']')
      return close(c);
    return begin_value(c);
  case expect::value:
    return begin_value(c);
  }
  return {};
}

/// An empty array or object one level too deep is none; what begins in it is.
status stream_reader::begin_value(char c) {
  if (stack_.size() > max_depth)
    return bad("nested deeper than {} levels", max_depth);
  token_.clear();
  if (c == '[' || c == '{') {
    stack_.push_back(c == '{');
    expect_ = c == '{' ? expect::key_or_end : expect::value_or_end;
    return give(c == '{' ? piece::kind::begin_object : piece::kind::begin_array);
  }
  if (c == '"') {
    mode_ = mode::string;
    return {};
  }
  if (!is_scalar(c))
    return bad("{} where a value should be", shown(c));
  mode_ = mode::scalar;
  token_ += c;
  return {};
}

status stream_reader::close(char c) {
  const char end = stack_.back() ? '}' : ']';
  if (c != end)
    return bad("{} where ',' or '{}' should be", shown(c), end);
  stack_.pop_back();
  after_value();
  return give(c == '}' ? piece::kind::end_object : piece::kind::end_array);
}

status stream_reader::in_string(char c) {
  if (c == '"')
    return end_string();
  if (static_cast<unsigned char>(c) < 0x20)
    return bad("a raw control character ({}) in a string", shown(c));
  if (c == '\\')
    mode_ = mode::escape;
  keep(c);
  return {};
}

status stream_reader::in_escape(char c) {
  if (mode_ == mode::hex) {
    if (!is_hex(c))
      return bad("{} where a hexadecimal digit should be", shown(c));
    if (--hex_digits_ == 0)
      mode_ = mode::string;
  } else if (c == 'u') {
    mode_ = mode::hex;
    hex_digits_ = 4;
  } else if (std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos) {
    mode_ = mode::string;
  } else {
    return bad("{} after a backslash is not an escape", shown(c));
  }
  keep(c);
  return {};
}

status stream_reader::end_string() {
  mode_ = mode::between;
  if (expect_ == expect::key || expect_ == expect::key_or_end) {
    expect_ = expect::colon;
    return give(piece::kind::key, token_);
  }
  after_value();
  return give(piece::kind::text, token_);
}

status stream_reader::end_scalar() {
  mode_ = mode::between;
  after_value();
  if (token_ == "null")
    return give(piece::kind::null);
  if (token_ == "true" || token_ == "false")
    return give(piece::kind::boolean, token_);
  if (form_of(token_) == number_form::none)
    return bad("'{}' is not JSON", std::string_view(token_).substr(0, 40));
  return give(piece::kind::number, token_);
}

status stream_reader::give(piece::kind what, std::string_view text) {
  return take_({.what = what, .text = text});
}

} // namespace millrace::json
