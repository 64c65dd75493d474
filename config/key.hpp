// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace millrace {

/// What a key holds. Nothing: an optional number that is off.
using key_value = std::variant<std::monostate, bool, std::int64_t, double, std::string,
                               std::vector<std::string>, std::map<std::string, double>>;

/// What a key wants.
struct boolean_type {};
/// A whole number in [min, max].
struct integer_type {
  std::int64_t min;
  std::int64_t max;
  bool bytes = false;    ///< a size: also written with a unit, "4GiB"
  bool optional = false; ///< may be "off"
};
/// A number in [min, max], not NaN.
struct number_type {
  double min;
  double max;
  bool optional = false; ///< may be "off"
};
/// Text without control characters, of at least and at most so many bytes.
struct text_type {
  std::size_t min;
  std::size_t max;
};
/// One of some names.
struct choice_type {
  std::span<const std::string_view> names;
  /// Names that will be known: refused with a message that says so.
  std::span<const std::string_view> later;
};
/// A list of texts, each of 1 to so many bytes.
struct text_list_type {
  std::size_t longest;
};
/// A table of numbers in [min, max] under names of 1 to so many bytes. Each name is set by itself;
/// what is not named stays.
struct number_table_type {
  double min;
  double max;
  std::size_t longest;
};
using key_type = std::variant<boolean_type, integer_type, number_type, text_type, choice_type,
                              text_list_type, number_table_type>;

/// One config key of the struct `Root`.
template <class Root> struct key {
  std::string_view name;    ///< with its sections: "scorer.instances"
  std::string_view meaning; ///< one sentence, for docs/config.md
  std::string_view unit;    ///< empty if it has none
  key_type type;
  key_value (*get)(const Root &);
  /// Precondition: the value is of the key's type and in its range.
  void (*set)(Root &, const key_value &);
};

namespace detail {

/// Members that are a key's value as they are.
template <class Member>
inline constexpr bool is_key_value =
    std::is_same_v<Member, bool> || std::is_same_v<Member, double> ||
    std::is_same_v<Member, std::string> || std::is_same_v<Member, std::vector<std::string>> ||
    std::is_same_v<Member, std::map<std::string, double>>;

/// A member as a key's value, and back. Choices are enums: the names stand in their order.
template <class Member> key_value to_key_value(const Member &member) {
  if constexpr (is_key_value<Member>)
    return member;
  else if constexpr (std::is_same_v<Member, std::filesystem::path>)
    return member.string();
  else if constexpr (std::is_same_v<Member, std::optional<double>>)
    return member ? key_value(*member) : key_value();
  else if constexpr (std::is_same_v<Member, std::optional<std::uint64_t>>)
    return member ? key_value(static_cast<std::int64_t>(*member)) : key_value();
  else
    return static_cast<std::int64_t>(member);
}

template <class Member> void from_key_value(Member &member, const key_value &value) {
  if constexpr (is_key_value<Member>)
    member = std::get<Member>(value);
  else if constexpr (std::is_same_v<Member, std::filesystem::path>)
    member = std::get<std::string>(value);
  else if constexpr (std::is_same_v<Member, std::optional<double>>)
    member = std::holds_alternative<double>(value) ? std::optional(std::get<double>(value))
                                                   : std::nullopt;
  else if constexpr (std::is_same_v<Member, std::optional<std::uint64_t>>)
    member = std::holds_alternative<std::int64_t>(value)
                 ? std::optional(static_cast<std::uint64_t>(std::get<std::int64_t>(value)))
                 : std::nullopt;
  else
    member = static_cast<Member>(std::get<std::int64_t>(value));
}

} // namespace detail

/// A key for the member that `Access` (a generic lambda without captures) names.
template <class Root, class Access>
constexpr key<Root> make_key(std::string_view name, Access, key_type type, std::string_view unit,
                             std::string_view meaning) {
  return {
      name,
      meaning,
      unit,
      type,
      [](const Root &root) { return detail::to_key_value(Access{}(root)); },
      [](Root &root, const key_value &value) { detail::from_key_value(Access{}(root), value); }};
}

} // namespace millrace
