// SPDX-License-Identifier: Apache-2.0
#include "transport/http_response.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "runtime/utf8.hpp"

namespace millrace {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (auto &c : out)
    c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return out;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view space = " \t";
  const auto from = text.find_first_not_of(space);
  if (from == std::string_view::npos)
    return {};
  return text.substr(from, text.find_last_not_of(space) - from + 1);
}

std::string shown(std::string_view text) { return to_one_line(text.substr(0, 80)); }

/// All of `text` as a number.
std::optional<std::uint64_t> number(std::string_view text, int base) {
  std::uint64_t out = 0;
  const auto *end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, out, base);
  return read.ec == std::errc{} && read.ptr == end ? std::optional(out) : std::nullopt;
}

} // namespace

status http_response_reader::feed(std::string_view bytes, const http_receiver &to) {
  while (!bytes.empty())
    MILLRACE_TRY(take(bytes, to));
  return {};
}

status http_response_reader::finish() {
  if (part_ == part::body_to_the_end)
    part_ = part::nothing;
  if (complete())
    return {};
  if (part_ == part::head)
    return fail(errc::peer_lost, "the connection ended {} an answer",
                head_size_ == 0 ? "without" : "in the head of");
  return fail(errc::peer_lost, "the connection ended after {} bytes of the answer", body_);
}

/// Takes some of the bytes off the front.
status http_response_reader::take(std::string_view &bytes, const http_receiver &to) {
  switch (part_) {
  case part::head:
  case part::chunk_size:
  case part::chunk_end:
  case part::trailer:
    return take_line(bytes, to);
  case part::body_of_length:
  case part::body_to_the_end:
  case part::chunk:
    return take_body(bytes, to);
  case part::nothing:
    break;
  }
  return fail(errc::bad_format, "bytes follow the end of the answer: '{}'", shown(bytes));
}

status http_response_reader::take_line(std::string_view &bytes, const http_receiver &to) {
  const auto end = bytes.find('\n');
  const auto taken = std::min(end, bytes.size());
  const auto size = head_size_ + taken + 1;
  if (size > most_head)
    return fail(errc::too_large, "the head of the answer has more than {} bytes", most_head);
  line_.append(bytes.substr(0, taken));
  head_size_ += taken;
  if (end == std::string_view::npos) {
    bytes = {};
    return {};
  }
  ++head_size_;
  bytes.remove_prefix(end + 1);
  if (!line_.empty() && line_.back() == '\r')
    line_.pop_back();
  auto taken_line = line_ended(to);
  line_.clear();
  return taken_line;
}

status http_response_reader::line_ended(const http_receiver &to) {
  switch (part_) {
  case part::head:
    if (head_.status == 0)
      return status_line();
    return line_.empty() ? head_ended(to) : field_line();
  case part::chunk_size:
    return size_line();
  case part::chunk_end:
    if (!line_.empty())
      return fail(errc::bad_format, "a chunk of the answer is longer than its size says");
    part_ = part::chunk_size;
    head_size_ = 0;
    return {};
  case part::trailer:
    if (line_.empty())
      part_ = part::nothing;
    return {};
  default:
    return {};
  }
}

/// "HTTP/1.1 200 OK"
status http_response_reader::status_line() {
  const std::string_view line = line_;
  const bool http = line.substr(0, 9) == "HTTP/1.1 " || line.substr(0, 9) == "HTTP/1.0 ";
  const auto code = number(line.substr(std::min<std::size_t>(9, line.size())).substr(0, 3), 10);
  if (!http || !code || *code < 100 || (line.size() > 12 && line[12] != ' '))
    return fail(errc::bad_format, "the answer is not HTTP/1.1: it begins with '{}'", shown(line));
  head_.status = static_cast<int>(*code);
  return {};
}

status http_response_reader::field_line() {
  const std::string_view line = line_;
  const auto colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0 || line[0] == ' ' || line[0] == '\t')
    return fail(errc::bad_format, "'{}' is not a header", shown(line));
  const auto name = lower(line.substr(0, colon));
  if (name.find_first_of(" \t") != std::string::npos)
    return fail(errc::bad_format, "'{}' is not a header", shown(line));
  const auto value = trimmed(line.substr(colon + 1));
  if (name == "content-type") {
    head_.content_type = value;
  } else if (name == "content-length") {
    const auto length = number(value, 10);
    if (!length || (length_ && *length_ != *length))
      return fail(errc::bad_format, "content-length is '{}'", shown(value));
    length_ = length;
  } else if (name == "transfer-encoding") {
    if (lower(value) != "chunked")
      return fail(errc::unsupported, "transfer-encoding '{}': only chunked is known", shown(value));
    chunked_ = true;
  } else if (name == "content-encoding" && lower(value) != "identity") {
    return fail(errc::unsupported, "content-encoding '{}', which was not asked for", shown(value));
  }
  return {};
}

status http_response_reader::head_ended(const http_receiver &to) {
  head_size_ = 0;
  if (head_.status < 200) { // 100 Continue: the answer is still to come
    if (length_ || chunked_)
      return fail(errc::bad_format, "an answer with status {} has a body", head_.status);
    head_ = {};
    return {};
  }
  if (length_ && chunked_)
    return fail(errc::bad_format, "the answer has a content-length and is chunked");
  if (length_.value_or(0) > most_body_)
    return fail(errc::too_large, "the answer has {} bytes, at most {} are expected", *length_,
                most_body_);
  if (to.head)
    MILLRACE_TRY(to.head(head_));
  left_ = length_.value_or(0);
  if (chunked_)
    part_ = part::chunk_size;
  else if (!length_)
    part_ = part::body_to_the_end;
  else
    part_ = left_ == 0 ? part::nothing : part::body_of_length;
  return {};
}

/// "1a3", perhaps with ";extensions"
status http_response_reader::size_line() {
  const auto size = number(trimmed(std::string_view(line_).substr(0, line_.find(';'))), 16);
  if (!size)
    return fail(errc::bad_format, "'{}' is not the size of a chunk", shown(line_));
  left_ = *size;
  head_size_ = 0;
  part_ = left_ == 0 ? part::trailer : part::chunk;
  return {};
}

status http_response_reader::take_body(std::string_view &bytes, const http_receiver &to) {
  const auto most = part_ == part::body_to_the_end ? UINT64_MAX : left_;
  const auto piece =
      bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(most, bytes.size())));
  if (piece.size() > most_body_ - body_)
    return fail(errc::too_large, "the answer has more than the {} bytes that are expected",
                most_body_);
  body_ += piece.size();
  bytes.remove_prefix(piece.size());
  if (to.body)
    MILLRACE_TRY(to.body(piece));
  if (part_ == part::body_to_the_end)
    return {};
  left_ -= piece.size();
  if (left_ == 0)
    part_ = part_ == part::chunk ? part::chunk_end : part::nothing;
  return {};
}

} // namespace millrace
