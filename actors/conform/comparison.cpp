// SPDX-License-Identifier: Apache-2.0
#include "actors/conform/comparison.hpp"

#include <cmath>

namespace millrace {

namespace {

bool close(double got, double want, std::optional<double> scale, double relative) {
  if (!scale)
    return got == want;
  return std::abs(got - want) <= relative * std::max(std::abs(want), *scale);
}

} // namespace

void comparison::differs(const json::value &want, std::string text) {
  if (difference_.empty())
    difference_ = fmt::format("{}: {}", want.path(), text);
}

std::optional<json::value> comparison::field(const json::value &object, std::string_view key) {
  auto found = object.field(key);
  if (found && *found)
    return *found;
  differs(object, fmt::format("lacks '{}'", key));
  return std::nullopt;
}

std::optional<std::vector<json::value>> comparison::items(const json::value &list,
                                                          std::size_t count) {
  auto found = list.items();
  if (found && found->size() == count)
    return std::move(*found);
  differs(list, found ? fmt::format("{} values, expected {}", count, found->size())
                      : found.error().message);
  return std::nullopt;
}

bool comparison::present(const json::value &want, bool have) {
  if (want.is_null() == have)
    differs(want, have ? "there, expected null" : "null, expected values");
  return have && !want.is_null();
}

void comparison::boolean(const json::value &want, bool got) {
  const auto value = want.as<bool>();
  if (!value || *value != got)
    differs(want, fmt::format("{}, expected {}", got, !got));
}

template <class T> void comparison::integers_of(const json::value &want, std::span<const T> got) {
  const std::optional<std::vector<json::value>> list = items(want, got.size());
  for (std::size_t i = 0; list && i < got.size(); ++i) {
    const auto value = (*list)[i].as<std::int64_t>();
    if (!value)
      return differs((*list)[i], value.error().message);
    if (*value != static_cast<std::int64_t>(got[i]))
      return differs((*list)[i], fmt::format("{}, expected {}", got[i], *value));
  }
}

void comparison::integers(const json::value &want, std::span<const std::uint32_t> got) {
  integers_of(want, got);
}

void comparison::integers(const json::value &want, std::span<const std::int64_t> got) {
  integers_of(want, got);
}

void comparison::booleans(const json::value &want, std::span<const std::uint8_t> got) {
  const auto list = items(want, got.size());
  for (std::size_t i = 0; list && i < got.size(); ++i)
    boolean((*list)[i], got[i] != 0);
}

void comparison::text(const json::value &want, std::string_view got) {
  const auto value = want.as<std::string_view>();
  if (!value || *value != got)
    differs(want, fmt::format("'{}', expected '{}'", got, value ? *value : "another"));
}

void comparison::number(const json::value &want, double got, std::optional<double> scale,
                        double relative) {
  const auto value = want.as<double>();
  if (!value)
    return differs(want, value.error().message);
  if (!close(got, *value, scale, relative))
    differs(want, fmt::format("{}, expected {}", got, *value));
}

void comparison::numbers(const json::value &want, std::span<const float> got,
                         std::optional<double> scale) {
  const auto list = items(want, got.size());
  for (std::size_t i = 0; list && i < got.size(); ++i)
    number((*list)[i], static_cast<double>(got[i]), scale);
}

} // namespace millrace
