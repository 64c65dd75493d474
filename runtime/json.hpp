// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.hpp"

namespace millrace::json {

/// Arrays and objects may be nested this deep; one level more is an error (an empty one is no
/// level). Reading does not recurse, so the stack of the caller's thread does not matter.
inline constexpr std::size_t max_depth = 512;

enum class kind { null, boolean, number, text, array, object };

/// What find() makes of a field that is there and null.
enum class nulls {
  refused,   ///< a null is an error
  as_absent, ///< a null is as if the field were not there
};

struct member;
class document;

namespace detail {
struct place;
struct state;
} // namespace detail

/// One value of a parsed document: as small as a pointer or three, valid until its document parses
/// again or ends. Errors (bad_value) begin with the path of the value:
/// "traces[0].nodes[3].token_ids[17]: 2.5 is not an integer". Thread: that of its document.
class value {
public:
  kind type() const;
  bool is_null() const { return type() == kind::null; }
  /// Where it stands: "traces[0].nodes[3]"; empty for the document itself.
  std::string path() const;

  /// The value as exactly a T:
  ///  bool; std::string_view (valid UTF-8, owned by the document); value (itself);
  ///  std::int32_t, std::int64_t, std::uint64_t: a JSON number without '.' and exponent, in range;
  ///  double: a finite number; vectors of std::int32_t; of float (finite as float32), of double;
  ///  std::vector<std::uint8_t> of true/false (or 0/1), as 1/0.
  template <class T> result<T> as() const;

  /// The elements of an array; the fields of an object, in their order.
  result<std::vector<value>> items() const;
  result<std::vector<member>> members() const;

  /// A field of an object, as a T. Errors: the object lacks it, it is null, it is not a T. Where a
  /// name stands twice, the first counts.
  template <class T> result<T> get(std::string_view key) const {
    auto found = field(key);
    if (!found)
      return tl::unexpected(std::move(found).error());
    if (!*found)
      return lacks(key);
    return (*found)->template as<T>();
  }

  /// A field that may be missing.
  template <class T> result<std::optional<T>> find(std::string_view key, nulls rule) const {
    auto found = field(key);
    if (!found)
      return tl::unexpected(std::move(found).error());
    if (!*found || (rule == nulls::as_absent && (*found)->is_null()))
      return std::optional<T>{};
    auto read = (*found)->template as<T>();
    if (!read)
      return tl::unexpected(std::move(read).error());
    return std::optional<T>(std::move(*read));
  }

  /// The field whatever its type, nothing if the object lacks it. Errors: not an object.
  result<std::optional<value>> field(std::string_view key) const;

  /// An error about this value, its path first.
  template <class... Args>
  [[nodiscard]] tl::unexpected<error> wrong(fmt::format_string<Args...> format,
                                            Args &&...args) const {
    return wrong_text(fmt::format(format, std::forward<Args>(args)...));
  }

private:
  friend class document;
  struct access;
  /// simdjson's element: a document pointer and an index into its tape.
  using raw_element = std::array<std::uint64_t, 2>;

  value(detail::state *state, const detail::place *place, raw_element raw)
      : state_(state), place_(place), raw_(raw) {}
  tl::unexpected<error> wrong_text(std::string_view what) const;
  tl::unexpected<error> lacks(std::string_view key) const;

  detail::state *state_;
  const detail::place *place_;
  raw_element raw_;
};

struct member {
  std::string_view key;
  json::value value;
};

/// Parses one JSON text after the other and owns what the current one's values point to. Owner: the
/// caller; values die with it and with the next parse(). Memory is kept for the next text.
class document {
public:
  document();
  ~document();
  document(document &&) noexcept;
  document &operator=(document &&) noexcept;

  /// The root of `text`, exactly one JSON value (RFC 8259) in UTF-8; `text` may go afterwards.
  /// Refused, with the path of the offending value and its byte: NaN and infinities, numbers that
  /// no double or 64-bit integer holds, lone surrogates, invalid UTF-8, nesting over max_depth.
  /// Errors: bad_format; too_large over 4 GiB or without memory for it.
  result<value> parse(std::string_view text);

private:
  std::unique_ptr<detail::state> state_;
};

template <> result<bool> value::as() const;
template <> result<std::string_view> value::as() const;
template <> result<std::string> value::as() const;
template <> result<value> value::as() const;
template <> result<std::int32_t> value::as() const;
template <> result<std::int64_t> value::as() const;
template <> result<std::uint64_t> value::as() const;
template <> result<double> value::as() const;
template <> result<std::vector<std::int32_t>> value::as() const;
template <> result<std::vector<float>> value::as() const;
template <> result<std::vector<double>> value::as() const;
template <> result<std::vector<std::uint8_t>> value::as() const;

} // namespace millrace::json
