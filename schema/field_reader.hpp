// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/result.hpp"
#include "schema/body.hpp"
#include "schema/limits.hpp"

namespace millrace {

/// Checks the fields of one message and keeps the first failure, so that what reads a message is
/// one expression: after a failure every field reads as empty, and done() gives the error. Errors
/// begin with "MESSAGE: FIELD".
class field_reader {
public:
  explicit field_reader(std::string_view name) : message_(name) {}

  bool ok() const noexcept { return !failure_; }

  template <class... Args>
  void refuse(errc code, std::string_view field, fmt::format_string<Args...> format,
              Args &&...args) {
    refuse({code, fmt::format(format, std::forward<Args>(args)...)}, field);
  }
  void refuse(error why, std::string_view field) {
    if (failure_)
      return;
    failure_ = std::move(why);
    failure_->message = fmt::format("{}: {}: {}", message_, field, failure_->message);
  }

  /// Text of at most `most` bytes; absent: empty.
  std::string text(const flatbuffers::String *value, std::string_view field,
                   std::size_t most = limits::name_bytes) {
    const auto found = text_of(value);
    if (found.size() > most)
      refuse(errc::too_large, field, "{} bytes, at most {} are allowed", found.size(), most);
    return ok() ? std::string(found) : std::string();
  }

  /// A name that must be there.
  std::string name(const flatbuffers::String *value, std::string_view field) {
    auto found = text(value, field);
    if (found.empty())
      refuse(errc::bad_value, field, "it is missing");
    return found;
  }

  /// A number of at most `most`.
  template <class T> T count(T value, std::string_view field, std::size_t most) {
    if (value > most)
      refuse(errc::too_large, field, "{}, at most {} are allowed", value, most);
    return ok() ? value : T{};
  }

  /// A table or a struct that must be there; nullptr after a failure.
  template <class T> const T *required(const T *value, std::string_view field) {
    if (value == nullptr)
      refuse(errc::bad_format, field, "it is missing");
    return ok() ? value : nullptr;
  }

  /// An enumerator up to `last`.
  template <class Enum, class Wire> Enum one_of(Wire value, Enum last, std::string_view field) {
    if (static_cast<unsigned>(value) > static_cast<unsigned>(last))
      refuse(errc::bad_value, field, "{} is unknown", static_cast<unsigned>(value));
    return ok() ? static_cast<Enum>(value) : Enum{};
  }

  /// The entries of a list, each read by `each`; absent: none.
  template <class T, class List, class F>
  std::vector<T> list(const List *values, std::string_view field, std::size_t most, F &&each) {
    std::vector<T> out;
    if (values == nullptr)
      return out;
    if (values->size() > most)
      refuse(errc::too_large, field, "{} entries, at most {} are allowed", values->size(), most);
    if (!ok())
      return out;
    out.reserve(values->size());
    for (const auto &value : *values) {
      out.push_back(each(value));
      if (!ok())
        return {};
    }
    return out;
  }

  /// The message, unless a field was refused.
  template <class Message> result<Message> done(Message out) {
    if (failure_)
      return failure();
    return out;
  }

  /// Precondition: not ok().
  tl::unexpected<error> failure() { return tl::unexpected(std::move(*failure_)); }

private:
  std::string_view message_;
  std::optional<error> failure_;
};

} // namespace millrace
