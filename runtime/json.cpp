// SPDX-License-Identifier: Apache-2.0
#include "runtime/json.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#include "runtime/json_scan.hpp"

#include <simdjson.h>

namespace millrace::json {

namespace dom = simdjson::dom;

namespace detail {

/// One step of a path: a field of an object or an element of an array, and the step before it.
struct place {
  const place *parent;
  std::string_view key; ///< of the document's own memory; empty data for an array element
  std::size_t index;
};

struct state {
  dom::parser parser;
  std::deque<place> places; ///< addresses are stable until the next text
  std::string padded;       ///< the text and what simdjson may read behind it
  bool depth_set = false;
};

} // namespace detail

struct value::access {
  static_assert(sizeof(dom::element) == sizeof(value::raw_element));
  static_assert(std::is_trivially_copyable_v<dom::element>);

  static dom::element element(const value &v) { return std::bit_cast<dom::element>(v.raw_); }
  static value make(detail::state *state, const detail::place *place, const dom::element &e) {
    return {state, place, std::bit_cast<value::raw_element>(e)};
  }
  static value child(const value &of, std::string_view key, const dom::element &e) {
    return make(of.state_, &of.state_->places.emplace_back(detail::place{of.place_, key, 0}), e);
  }
  static value child(const value &of, std::size_t index, const dom::element &e) {
    return make(of.state_, &of.state_->places.emplace_back(detail::place{of.place_, {}, index}), e);
  }
};

namespace {

/// A number as a person wrote it, or near to it: 1.0 stays distinct from 1.
std::string shown(const dom::element &e) {
  switch (e.type()) {
  case dom::element_type::NULL_VALUE:
    return "null";
  case dom::element_type::BOOL:
    return bool(e) ? "true" : "false";
  case dom::element_type::INT64:
    return fmt::format("{}", std::int64_t(e));
  case dom::element_type::UINT64:
    return fmt::format("{}", std::uint64_t(e));
  case dom::element_type::DOUBLE: {
    auto text = fmt::format("{}", double(e));
    if (text.find_first_not_of("-0123456789") == std::string::npos)
      text += ".0";
    return text;
  }
  case dom::element_type::STRING:
    return "a string";
  case dom::element_type::ARRAY:
    return "an array";
  case dom::element_type::OBJECT:
    return "an object";
  }
  return "?";
}

/// How one element becomes a T, and why it does not.
template <class T> struct integer {
  static bool read(const dom::element &e, T &out) {
    if (e.type() == dom::element_type::INT64) {
      const auto n = std::int64_t(e);
      out = static_cast<T>(n);
      return std::in_range<T>(n);
    }
    if (e.type() == dom::element_type::UINT64) {
      const auto n = std::uint64_t(e);
      out = static_cast<T>(n);
      return std::in_range<T>(n);
    }
    return false;
  }
  static std::string why(const dom::element &e) {
    using limits = std::numeric_limits<T>;
    if (e.type() != dom::element_type::INT64 && e.type() != dom::element_type::UINT64)
      return shown(e) + " is not an integer";
    return fmt::format("{} is outside {} to {}", shown(e), limits::min(), limits::max());
  }
};

template <class T> struct finite {
  static bool read(const dom::element &e, T &out) {
    double number = 0;
    if (e.get(number) != simdjson::SUCCESS)
      return false;
    out = static_cast<T>(number);
    return std::isfinite(out);
  }
  static std::string why(const dom::element &e) {
    if (double number = 0; e.get(number) != simdjson::SUCCESS)
      return shown(e) + " is not a number";
    return fmt::format("{} does not fit a float{}", shown(e), 8 * sizeof(T));
  }
};

struct flag {
  static bool read(const dom::element &e, std::uint8_t &out) {
    if (e.type() == dom::element_type::BOOL) {
      out = bool(e) ? 1 : 0;
      return true;
    }
    return integer<std::uint8_t>::read(e, out) && out <= 1;
  }
  static std::string why(const dom::element &e) { return shown(e) + " is not true or false"; }
};

/// One element by such a rule.
template <class T, class Rule> result<T> scalar(const value &self, const dom::element &element) {
  T out{};
  if (!Rule::read(element, out))
    return self.wrong("{}", Rule::why(element));
  return out;
}

/// All elements of an array by such a rule.
template <class T, class Rule>
result<std::vector<T>> vector_of(const value &self, const dom::element &element) {
  dom::array array;
  if (element.get(array) != simdjson::SUCCESS)
    return self.wrong("{} is not an array", shown(element));
  std::vector<T> out;
  out.reserve(array.size()); // a count that stops at 2^24 - 1
  for (const auto item : array) {
    T read{};
    if (!Rule::read(item, read)) {
      auto place = self.path();
      append_index(place, out.size());
      return fail(errc::bad_value, "{}: {}", shorten(std::move(place)), Rule::why(item));
    }
    out.push_back(read);
  }
  return out;
}

} // namespace

kind value::type() const {
  switch (access::element(*this).type()) {
  case dom::element_type::NULL_VALUE:
    return kind::null;
  case dom::element_type::BOOL:
    return kind::boolean;
  case dom::element_type::STRING:
    return kind::text;
  case dom::element_type::ARRAY:
    return kind::array;
  case dom::element_type::OBJECT:
    return kind::object;
  default:
    return kind::number;
  }
}

std::string value::path() const {
  std::vector<const detail::place *> steps;
  for (const auto *p = place_; p != nullptr; p = p->parent)
    steps.push_back(p);
  std::string out;
  for (auto i = steps.size(); i-- > 0;)
    if (steps[i]->key.data() == nullptr)
      append_index(out, steps[i]->index);
    else
      append_key(out, steps[i]->key);
  return out;
}

tl::unexpected<error> value::wrong_text(std::string_view what) const {
  const auto where = shorten(path());
  return where.empty() ? fail(errc::bad_value, "{}", what)
                       : fail(errc::bad_value, "{}: {}", where, what);
}

tl::unexpected<error> value::lacks(std::string_view key) const {
  auto where = path();
  append_key(where, key);
  return fail(errc::bad_value, "{}: is missing", shorten(std::move(where)));
}

result<std::optional<value>> value::field(std::string_view key) const {
  dom::object object;
  const auto element = access::element(*this);
  if (element.get(object) != simdjson::SUCCESS)
    return wrong("{} is not an object", shown(element));
  for (const auto [name, at] : object)
    if (name == key)
      return access::child(*this, name, at);
  return std::nullopt;
}

result<std::vector<value>> value::items() const {
  dom::array array;
  const auto element = access::element(*this);
  if (element.get(array) != simdjson::SUCCESS)
    return wrong("{} is not an array", shown(element));
  std::vector<value> out;
  out.reserve(array.size());
  for (const auto item : array)
    out.push_back(access::child(*this, out.size(), item));
  return out;
}

result<std::vector<member>> value::members() const {
  dom::object object;
  const auto element = access::element(*this);
  if (element.get(object) != simdjson::SUCCESS)
    return wrong("{} is not an object", shown(element));
  std::vector<member> out;
  out.reserve(object.size());
  for (const auto [name, at] : object)
    out.push_back({name, access::child(*this, name, at)});
  return out;
}

template <> result<bool> value::as() const {
  const auto element = access::element(*this);
  if (element.type() != dom::element_type::BOOL)
    return wrong("{} is not true or false", shown(element));
  return bool(element);
}

template <> result<std::string_view> value::as() const {
  const auto element = access::element(*this);
  if (element.type() != dom::element_type::STRING)
    return wrong("{} is not a string", shown(element));
  return std::string_view(element);
}

template <> result<std::string> value::as() const {
  return as<std::string_view>().map([](std::string_view text) { return std::string(text); });
}

template <> result<value> value::as() const { return *this; }

template <> result<std::int32_t> value::as() const {
  return scalar<std::int32_t, integer<std::int32_t>>(*this, access::element(*this));
}
template <> result<std::int64_t> value::as() const {
  return scalar<std::int64_t, integer<std::int64_t>>(*this, access::element(*this));
}
template <> result<std::uint64_t> value::as() const {
  return scalar<std::uint64_t, integer<std::uint64_t>>(*this, access::element(*this));
}
template <> result<double> value::as() const {
  return scalar<double, finite<double>>(*this, access::element(*this));
}

template <> result<std::vector<std::int32_t>> value::as() const {
  return vector_of<std::int32_t, integer<std::int32_t>>(*this, access::element(*this));
}
template <> result<std::vector<float>> value::as() const {
  return vector_of<float, finite<float>>(*this, access::element(*this));
}
template <> result<std::vector<double>> value::as() const {
  return vector_of<double, finite<double>>(*this, access::element(*this));
}
template <> result<std::vector<std::uint8_t>> value::as() const {
  return vector_of<std::uint8_t, flag>(*this, access::element(*this));
}

document::document() : state_(std::make_unique<detail::state>()) {}
document::~document() = default;
document::document(document &&) noexcept = default;
document &document::operator=(document &&) noexcept = default;

result<value> document::parse(std::string_view text) {
  state_->places.clear();
  if (text.size() > std::numeric_limits<std::uint32_t>::max() - simdjson::SIMDJSON_PADDING)
    return fail(errc::too_large, "a JSON text of {} bytes, at most 4 GiB are allowed", text.size());
  if (!state_->depth_set) {
    // simdjson counts the document itself as a level.
    if (state_->parser.allocate(4096, max_depth + 1) != simdjson::SUCCESS)
      return fail(errc::too_large, "no memory for a JSON parser");
    state_->depth_set = true;
  }
  try {
    state_->padded.reserve(text.size() + simdjson::SIMDJSON_PADDING);
    state_->padded.assign(text);
  } catch (const std::bad_alloc &) {
    return fail(errc::too_large, "no memory for a JSON text of {} bytes", text.size());
  }
  dom::element root;
  const auto code =
      state_->parser.parse(state_->padded.data(), state_->padded.size(), false).get(root);
  if (code == simdjson::MEMALLOC || code == simdjson::CAPACITY)
    return fail(errc::too_large, "no memory to parse a JSON text of {} bytes", text.size());
  if (code != simdjson::SUCCESS)
    return explain(text, simdjson::error_message(code));
  return value::access::make(state_.get(), nullptr, root);
}

} // namespace millrace::json
