// SPDX-License-Identifier: Apache-2.0
#include "runtime/json_scan.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "runtime/json.hpp"
#include "runtime/utf8.hpp"

namespace millrace::json {

bool is_scalar(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' ||
         c == '-' || c == '.' || c == '_';
}

namespace {

constexpr std::size_t most_defects = 1000;
constexpr std::string_view replacement = "\xEF\xBF\xBD"; // U+FFFD

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string quoted(std::string_view token) {
  constexpr std::size_t most = 40;
  std::string out(token.substr(0, most));
  for (auto &c : out)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f)
      c = '?';
  return token.size() > most ? out + "..." : out;
}

} // namespace

number_form form_of(std::string_view t) noexcept {
  std::size_t i = 0;
  const auto digits = [&] {
    const auto from = i;
    while (i < t.size() && is_digit(t[i]))
      ++i;
    return i - from;
  };
  if (i < t.size() && t[i] == '-')
    ++i;
  const bool zero = i < t.size() && t[i] == '0';
  const auto whole = digits();
  if (whole == 0 || (zero && whole > 1))
    return number_form::none;
  auto form = number_form::integer;
  if (i < t.size() && t[i] == '.') {
    ++i;
    form = number_form::real;
    if (digits() == 0)
      return number_form::none;
  }
  if (i < t.size() && (t[i] == 'e' || t[i] == 'E')) {
    ++i;
    form = number_form::real;
    if (i < t.size() && (t[i] == '+' || t[i] == '-'))
      ++i;
    if (digits() == 0)
      return number_form::none;
  }
  return i == t.size() ? form : number_form::none;
}

namespace {

/// NaN and the infinities as JSON writers of several languages spell them.
bool is_non_finite(std::string_view token) {
  std::string word;
  for (char c : token)
    word += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (!word.empty() && (word.front() == '-' || word.front() == '+'))
    word.erase(0, 1);
  return word == "nan" || word == "inf" || word == "infinity";
}

bool fits_64_bits(std::string_view token) {
  std::int64_t low = 0;
  std::uint64_t high = 0;
  const auto *end = token.data() + token.size();
  return std::from_chars(token.data(), end, low).ec == std::errc{} ||
         std::from_chars(token.data(), end, high).ec == std::errc{};
}

/// One pass over a text with a stack of its own.
class scanner {
public:
  explicit scanner(std::string_view text) : text_(text) {}

  /// Nothing if the text is one JSON value but for `defects()`; else what is wrong with it.
  std::optional<defect> run();

  std::vector<defect> &defects() { return defects_; }
  /// The text with its defects replaced.
  std::string take_text() {
    out_.append(text_.substr(copied_));
    return std::move(out_);
  }

private:
  struct level {
    bool object;
    std::size_t index;    ///< of the element, in an array
    std::string_view key; ///< of the field, raw, in an object; no data until it is read
  };
  enum class expect { value, value_or_end, key, key_or_end, comma_or_end, nothing };

  std::string path() const;
  std::optional<defect> fatal(std::size_t at, std::string what) const {
    return defect{at, path(), std::move(what)};
  }
  /// Notes a defect of the bytes [from, to) and puts `by` in their place.
  void replace(std::size_t from, std::size_t to, std::string_view by, std::string what);

  std::optional<defect> take_one();
  std::optional<defect> open(char c);
  std::optional<defect> close(char c);
  std::optional<defect> scalar();
  std::optional<defect> string();
  std::optional<defect> escape();
  /// The code unit of "\uXXXX" at `at`, or nothing.
  std::optional<std::uint32_t> unit(std::size_t at) const;
  void surrogate(std::uint32_t first);
  void after_value() { expect_ = stack_.empty() ? expect::nothing : expect::comma_or_end; }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<level> stack_;
  expect expect_ = expect::value;
  std::vector<defect> defects_;
  std::string out_;
  std::size_t copied_ = 0; ///< bytes of text_ that out_ stands for
};

std::string scanner::path() const {
  std::string out;
  for (const auto &step : stack_)
    if (!step.object)
      append_index(out, step.index);
    else if (step.key.data() != nullptr)
      append_key(out, step.key);
  return out;
}

void scanner::replace(std::size_t from, std::size_t to, std::string_view by, std::string what) {
  out_.append(text_.substr(copied_, from - copied_)).append(by);
  copied_ = to;
  if (defects_.size() < most_defects)
    defects_.push_back({from, path(), std::move(what)});
}

std::optional<defect> scanner::run() {
  for (;;) {
    while (at_ < text_.size() && is_space(text_[at_]))
      ++at_;
    if (at_ == text_.size())
      break;
    if (auto bad = take_one())
      return bad;
  }
  if (expect_ == expect::nothing)
    return {};
  return fatal(at_, stack_.empty() ? "there is no value" : "the text ends inside a value");
}

std::optional<defect> scanner::take_one() {
  const char c = text_[at_];
  switch (expect_) {
  case expect::nothing:
    return fatal(at_, fmt::format("'{}' follows the end of the value", quoted(text_.substr(at_))));
  case expect::key:
  case expect::key_or_end: {
    if (c == '}' && expect_ == expect::key_or_end)
      return close(c);
    if (c != '"')
      return fatal(at_, fmt::format("'{}' where a field name should be", quoted({&c, 1})));
    const auto from = at_ + 1;
    stack_.back().key = {};
    if (auto bad = string())
      return bad;
    stack_.back().key = text_.substr(from, at_ - 1 - from);
    while (at_ < text_.size() && is_space(text_[at_]))
      ++at_;
    if (at_ == text_.size() || text_[at_] != ':')
      return fatal(at_, "no ':' after a field name");
    ++at_;
    expect_ = expect::value;
    return {};
  }
  case expect::comma_or_end:
    if (c != ',')
      return close(c);
    ++at_;
    stack_.back().index += 1;
    expect_ = stack_.back().object ? expect::key : expect::value;
    return {};
  case expect::value:
  case expect::value_or_end:
    break;
  }
  if (c == ']' && expect_ == expect::value_or_end)
    return close(c);
  if (c == '[' || c == '{')
    return open(c);
  if (c != '"')
    return scalar();
  auto bad = string();
  after_value();
  return bad;
}

std::optional<defect> scanner::open(char c) {
  const auto next = text_.find_first_not_of(" \t\n\r", at_ + 1);
  const bool empty = next != std::string_view::npos && text_[next] == (c == '{' ? '}' : ']');
  if (stack_.size() == max_depth && !empty)
    return fatal(at_, fmt::format("nested deeper than {} levels", max_depth));
  stack_.push_back({c == '{', 0, {}});
  expect_ = c == '{' ? expect::key_or_end : expect::value_or_end;
  ++at_;
  return {};
}

std::optional<defect> scanner::close(char c) {
  if (c != (stack_.back().object ? '}' : ']'))
    return fatal(at_, fmt::format("'{}' where ',' or '{}' should be", quoted({&c, 1}),
                                  stack_.back().object ? '}' : ']'));
  stack_.pop_back();
  ++at_;
  after_value();
  return {};
}

std::optional<defect> scanner::scalar() {
  const auto from = at_;
  while (at_ < text_.size() && is_scalar(text_[at_]))
    ++at_;
  const auto token = text_.substr(from, at_ - from);
  const auto form = form_of(token);
  if (form == number_form::integer && !fits_64_bits(token))
    replace(from, at_, "null", quoted(token) + " does not fit 64 bits");
  else if (form == number_form::real &&
           std::isinf(std::strtod(std::string(token).c_str(), nullptr)))
    replace(from, at_, "null", quoted(token) + " does not fit a double");
  else if (form == number_form::none && is_non_finite(token))
    replace(from, at_, "null", quoted(token) + " is not a JSON number");
  else if (form == number_form::none && token != "true" && token != "false" && token != "null")
    return fatal(
        from, fmt::format("'{}' is not JSON", quoted(token.empty() ? text_.substr(from) : token)));
  after_value();
  return {};
}

std::optional<defect> scanner::string() {
  ++at_;
  while (at_ < text_.size()) {
    const auto c = static_cast<unsigned char>(text_[at_]);
    if (c == '"') {
      ++at_;
      return {};
    }
    if (c == '\\') {
      if (auto bad = escape())
        return bad;
    } else if (c < 0x20) {
      return fatal(at_, fmt::format("a raw control character (byte {:#04x}) in a string", c));
    } else if (c < 0x80) {
      ++at_;
    } else if (const auto length = utf8_length(text_.substr(at_)); length > 0) {
      at_ += length;
    } else {
      replace(at_, at_ + 1, replacement, fmt::format("byte {:#04x} is not UTF-8", c));
      ++at_;
    }
  }
  return fatal(at_, "the text ends inside a string");
}

std::optional<std::uint32_t> scanner::unit(std::size_t at) const {
  constexpr std::size_t length = 6; // \uXXXX
  if (text_.size() - at < length || text_[at] != '\\' || text_[at + 1] != 'u')
    return std::nullopt;
  std::uint32_t out = 0;
  const auto *from = text_.data() + at + 2;
  const auto read = std::from_chars(from, from + 4, out, 16);
  if (read.ec != std::errc{} || read.ptr != from + 4)
    return std::nullopt;
  return out;
}

std::optional<defect> scanner::escape() {
  const char c = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
  if (std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos) {
    at_ += 2;
    return {};
  }
  const auto code = unit(at_);
  if (!code)
    return fatal(at_, fmt::format("'{}' is not an escape", quoted(text_.substr(at_, 2))));
  if (*code >= 0xd800 && *code < 0xe000)
    surrogate(*code);
  else
    at_ += 6;
  return {};
}

void scanner::surrogate(std::uint32_t first) {
  if (first < 0xdc00)
    if (const auto second = unit(at_ + 6); second && *second >= 0xdc00 && *second < 0xe000) {
      at_ += 12;
      return;
    }
  replace(at_, at_ + 6, replacement, quoted(text_.substr(at_, 6)) + " is half of a character");
  at_ += 6;
}

tl::unexpected<error> to_error(const defect &bad) {
  if (bad.path.empty())
    return fail(errc::bad_format, "{} (byte {})", bad.what, bad.offset);
  return fail(errc::bad_format, "{}: {} (byte {})", shorten(bad.path), bad.what, bad.offset);
}

} // namespace

result<repaired_text> repair(std::string_view text) {
  scanner scan(text);
  if (auto bad = scan.run())
    return to_error(*bad);
  return repaired_text{scan.take_text(), std::move(scan.defects())};
}

tl::unexpected<error> explain(std::string_view text, std::string_view reason) {
  scanner scan(text);
  const auto bad = scan.run();
  if (!scan.defects().empty())
    return to_error(scan.defects().front());
  if (bad)
    return to_error(*bad);
  return fail(errc::bad_format, "not JSON: {}", reason);
}

void append_key(std::string &path, std::string_view key) {
  const bool plain = !key.empty() && key.size() <= 40 &&
                     std::all_of(key.begin(), key.end(),
                                 [](char c) { return is_scalar(c) && c != '.' && c != '+'; });
  if (plain)
    path.append(path.empty() ? "" : ".").append(key);
  else
    path.append("[\"").append(quoted(key)).append("\"]");
}

void append_index(std::string &path, std::size_t index) { path += fmt::format("[{}]", index); }

std::string shorten(std::string path) {
  constexpr std::size_t most = 200;
  if (path.size() <= most)
    return path;
  return path.substr(0, most / 2) + " ... " + path.substr(path.size() - most / 2);
}

} // namespace millrace::json
