// SPDX-License-Identifier: Apache-2.0
#include "actors/peer.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace millrace {

namespace {

constexpr std::array<std::string_view, 8> names{"directory", "env-reader", "assembler", "scorer",
                                                "planner",   "packer",     "trainer",   "host"};

} // namespace

std::string_view to_string(role what) noexcept { return names[static_cast<std::size_t>(what)]; }

std::optional<role> role_of(std::string_view name) noexcept {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    return std::nullopt;
  return static_cast<role>(found - names.begin());
}

std::optional<std::uint32_t> number_in(std::string_view name) noexcept {
  const auto digits = name.substr(name.rfind('-') + 1);
  std::uint32_t value = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.size() == name.size() || problem != std::errc{} ||
      end != digits.data() + digits.size())
    return std::nullopt;
  return value;
}

} // namespace millrace
