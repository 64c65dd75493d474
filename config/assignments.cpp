// SPDX-License-Identifier: Apache-2.0
#include "config/assignments.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>
#include <toml++/toml.h>

namespace millrace {
namespace {

std::string_view foreign_type(toml::node_type type) {
  switch (type) {
  case toml::node_type::table:
    return table_type;
  case toml::node_type::array:
    return "an array";
  case toml::node_type::date:
    return "a date";
  case toml::node_type::time:
    return "a time";
  default:
    return "a date and time";
  }
}

/// The elements of an array of strings; nothing for another one.
std::optional<std::vector<std::string>> texts_of(const toml::array &array) {
  std::vector<std::string> out;
  for (const auto &element : array) {
    const auto *text = element.as_string();
    if (text == nullptr)
      return std::nullopt;
    out.push_back(text->get());
  }
  return out;
}

written_value value_of(const toml::node &node) {
  if (const auto *boolean = node.as_boolean())
    return boolean->get();
  if (const auto *integer = node.as_integer())
    return integer->get();
  if (const auto *number = node.as_floating_point())
    return number->get();
  if (const auto *text = node.as_string())
    return text->get();
  if (const auto *array = node.as_array(); array != nullptr)
    if (auto texts = texts_of(*array))
      return *std::move(texts);
  return foreign_value{foreign_type(node.type())};
}

// Depth is bounded: the parser refuses values nested deeper than 256.
void flatten(const toml::table &table, std::vector<std::string> &path, std::string_view file,
             std::vector<assignment> &out) {
  for (const auto &[key, node] : table) {
    path.emplace_back(key.str());
    const toml::table *inner = node.as_table();
    if (inner != nullptr && !inner->empty())
      flatten(*inner, path, file, out);
    else
      out.push_back({path,
                     fmt::format("{}:{}", file, key.source().begin.line),
                     value_of(node),
                     {},
                     key.source().begin.line});
    path.pop_back();
  }
}

// toml++ reports the place beside its message and throws; nothing of it leaves this file.
result<std::vector<assignment>> parse(std::string_view text, std::string_view file) {
  try {
    const toml::table table = toml::parse(text);
    std::vector<assignment> out;
    std::vector<std::string> path;
    flatten(table, path, file, out);
    std::stable_sort(out.begin(), out.end(),
                     [](const auto &a, const auto &b) { return a.line < b.line; });
    return out;
  } catch (const toml::parse_error &problem) {
    return fail(errc::bad_config, "{}:{}: {}", file, problem.source().begin.line,
                printable(problem.description()));
  }
}

/// Where the first "=" outside quotes stands: a quoted part of a key may hold one.
std::size_t find_equals(std::string_view text) {
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quote != 0) {
      if (text[i] == quote)
        quote = 0;
    } else if (text[i] == '"' || text[i] == '\'') {
      quote = text[i];
    } else if (text[i] == '=') {
      return i;
    }
  }
  return std::string_view::npos;
}

bool one_line(std::string_view text) {
  for (const char c : text)
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0)
      return false;
  return true;
}

} // namespace

std::string printable(std::string_view text) {
  constexpr std::size_t most = 80;
  std::string out;
  for (const char c : text.substr(0, most)) {
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return text.size() > most ? out + "..." : out;
}

std::string toml_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += c;
  }
  return out + '"';
}

std::string describe(const written_value &value) {
  struct visitor {
    std::string operator()(bool v) const { return fmt::format("{} is a boolean", v); }
    std::string operator()(std::int64_t v) const { return fmt::format("{} is an integer", v); }
    std::string operator()(double v) const { return fmt::format("{} is a float", v); }
    std::string operator()(const std::string &v) const {
      return fmt::format("'{}' is a string", printable(v));
    }
    std::string operator()(const std::vector<std::string> &) const {
      return "the value is an array";
    }
    std::string operator()(const foreign_value &v) const {
      return fmt::format("the value is {}", v.type);
    }
  };
  return std::visit(visitor{}, value);
}

std::string assignment::name() const {
  std::string out;
  for (const std::string &part : path)
    out += (out.empty() ? "" : ".") + part;
  return out;
}

result<std::vector<assignment>> parse_toml(std::string_view text, std::string_view file) {
  return parse(text, file);
}

result<std::vector<assignment>> parse_set(std::string_view text) {
  const std::size_t equals = find_equals(text);
  if (equals == std::string_view::npos || !one_line(text))
    return fail(errc::bad_config, "--set '{}': key=value is wanted, on one line", printable(text));
  const std::string key(text.substr(0, equals));
  const std::string value(text.substr(equals + 1));
  auto assignments = parse(key + " = " + value, "--set");
  if (!assignments) // not a TOML value: a bare string, say a path
    assignments = parse(key + " = " + toml_quoted(value), "--set");
  if (!assignments)
    return fail(errc::bad_config, "--set '{}': '{}' is not a key", printable(text), printable(key));
  for (assignment &each : *assignments) {
    each.place = "--set";
    if (!std::holds_alternative<std::string>(each.value) && assignments->size() == 1)
      each.raw = value;
  }
  return assignments;
}

} // namespace millrace
