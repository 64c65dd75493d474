// SPDX-License-Identifier: Apache-2.0
#include "config/convert.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "runtime/nearest.hpp"

namespace millrace {
namespace {

tl::unexpected<error> wrong_type(const assignment &from, std::string_view wanted) {
  return fail(errc::bad_config, "{}, {} is wanted", describe(from.value), wanted);
}

/// "4GiB" as bytes; nothing if it is not a size or does not fit.
std::optional<std::int64_t> parse_bytes(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, int>, 5> units{
      {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}, {"B", 0}}};
  std::int64_t count = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (problem != std::errc{} || count < 0)
    return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  for (const auto &[name, shift] : units)
    if (unit == name && count <= (INT64_MAX >> shift))
      return count << shift;
  return std::nullopt;
}

std::string a_choice_of(std::span<const std::string_view> names) {
  std::string out;
  for (const std::string_view name : names) {
    out += out.empty() ? "" : " or ";
    out += name;
  }
  return out;
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; });
}

/// A name in a list or a table.
status check_name(std::string_view text, std::size_t longest) {
  if (text.empty() || text.size() > longest)
    return fail(errc::bad_config, "a name of {} bytes, 1 to {} are wanted", text.size(), longest);
  if (has_control(text))
    return fail(errc::bad_config, "'{}' holds a control character", printable(text));
  return {};
}

struct converter {
  const assignment &from;

  result<key_value> operator()(const boolean_type &) const {
    if (const auto *value = std::get_if<bool>(&from.value))
      return *value;
    return wrong_type(from, "true or false");
  }

  result<key_value> operator()(const integer_type &type) const {
    std::optional<std::int64_t> value;
    const auto *text = std::get_if<std::string>(&from.value);
    if (const auto *number = std::get_if<std::int64_t>(&from.value))
      value = *number;
    else if (text != nullptr && type.bytes)
      value = parse_bytes(*text);
    else if (text != nullptr && type.optional && *text == "off")
      return result<key_value>(); // holds nothing: off
    if (!value)
      return wrong_type(from, type.bytes      ? "an integer or a size such as \"4GiB\""
                              : type.optional ? "an integer or \"off\""
                                              : "an integer");
    if (*value < type.min || *value > type.max)
      return fail(errc::bad_config, "{} is out of range, {} to {} is wanted", *value, type.min,
                  type.max);
    return *value;
  }

  result<key_value> operator()(const number_type &type) const {
    double value = 0;
    if (const auto *number = std::get_if<double>(&from.value))
      value = *number;
    else if (const auto *whole = std::get_if<std::int64_t>(&from.value))
      value = static_cast<double>(*whole);
    else if (const auto *text = std::get_if<std::string>(&from.value);
             text != nullptr && type.optional && *text == "off")
      return result<key_value>(); // holds nothing: off
    else
      return wrong_type(from, type.optional ? "a number or \"off\"" : "a number");
    if (!(value >= type.min && value <= type.max)) // NaN too
      return fail(errc::bad_config, "{} is out of range, {} to {} is wanted", value, type.min,
                  type.max);
    return value;
  }

  result<key_value> operator()(const text_type &type) const {
    const auto *text = std::get_if<std::string>(&from.value);
    if (text == nullptr && from.raw)
      text = &*from.raw; // --set run.id=7
    if (text == nullptr)
      return wrong_type(from, "a string");
    if (text->size() < type.min || text->size() > type.max)
      return fail(errc::bad_config, "a string of {} bytes, {} to {} are wanted", text->size(),
                  type.min, type.max);
    if (has_control(*text))
      return fail(errc::bad_config, "'{}' holds a control character", printable(*text));
    return *text;
  }

  result<key_value> operator()(const text_list_type &type) const {
    const auto *list = std::get_if<std::vector<std::string>>(&from.value);
    if (list == nullptr)
      return wrong_type(from, "a list of strings");
    for (const auto &text : *list)
      MILLRACE_TRY(check_name(text, type.longest));
    return *list;
  }

  /// One entry; its name is the last part of the key.
  result<key_value> operator()(const number_table_type &type) const {
    if (const auto *other = std::get_if<foreign_value>(&from.value);
        other != nullptr && other->type == table_type)
      return std::map<std::string, double>{};
    const auto &name = from.path.back();
    MILLRACE_TRY(check_name(name, type.longest));
    auto number = (*this)(number_type{type.min, type.max});
    if (!number)
      return number;
    return std::map<std::string, double>{{name, std::get<double>(*number)}};
  }

  result<key_value> operator()(const choice_type &type) const {
    const auto *text = std::get_if<std::string>(&from.value);
    if (text == nullptr)
      return wrong_type(from, a_choice_of(type.names));
    if (std::find(type.names.begin(), type.names.end(), *text) != type.names.end())
      return *text;
    const std::string_view word = std::string_view(*text).substr(0, text->find(' '));
    if (std::find(type.later.begin(), type.later.end(), word) != type.later.end())
      return fail(errc::bad_config, "'{}' is not supported yet, {} is wanted", printable(*text),
                  a_choice_of(type.names));
    return fail(errc::bad_config, "'{}' is not known, {} is wanted", printable(*text),
                a_choice_of(type.names));
  }
};

struct range_writer {
  std::string operator()(const boolean_type &) const { return "true or false"; }
  std::string operator()(const integer_type &type) const {
    return fmt::format("{}, {} to {}{}", type.bytes ? "integer or size" : "integer", type.min,
                       type.max, type.optional ? ", or \"off\"" : "");
  }
  std::string operator()(const number_type &type) const {
    return fmt::format("number, {} to {}{}", type.min, type.max,
                       type.optional ? ", or \"off\"" : "");
  }
  std::string operator()(const text_type &type) const {
    return fmt::format("string, {} to {} bytes", type.min, type.max);
  }
  std::string operator()(const choice_type &type) const { return a_choice_of(type.names); }
  std::string operator()(const text_list_type &type) const {
    return fmt::format("list of strings, 1 to {} bytes each", type.longest);
  }
  std::string operator()(const number_table_type &type) const {
    return fmt::format("table of numbers, {} to {}", type.min, type.max);
  }
};

struct toml_writer {
  std::string operator()(std::monostate) const { return "\"off\""; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return fmt::format("{}", value); }
  std::string operator()(const std::string &value) const { return toml_quoted(value); }
  std::string operator()(const std::vector<std::string> &values) const {
    std::string out;
    for (const auto &value : values)
      out += (out.empty() ? "" : ", ") + toml_quoted(value);
    return "[" + out + "]";
  }
  std::string operator()(const std::map<std::string, double> &values) const {
    std::string out;
    for (const auto &[name, value] : values)
      out += fmt::format("{}{} = {}", out.empty() ? " " : ", ", toml_quoted(name), value);
    return out.empty() ? "{}" : "{" + out + " }";
  }
};

} // namespace

result<key_value> convert(const assignment &written, const key_type &type) {
  return std::visit(converter{written}, type);
}

std::string range_text(const key_type &type) { return std::visit(range_writer{}, type); }

std::string toml_text(const key_value &value) { return std::visit(toml_writer{}, value); }

} // namespace millrace
