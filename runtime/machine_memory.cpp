// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine_memory.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace millrace {
namespace {

constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t least_default = std::uint64_t{64} << 20;

/// Files of the system have no size, so they are read and not mapped. Empty if there is none.
std::string text_of(const std::filesystem::path &path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// The number at the start of the text; "max" and what else is none give nothing.
std::optional<std::uint64_t> number_in(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end == text.data())
    return std::nullopt;
  return value;
}

std::uint64_t total_memory(const std::filesystem::path &proc) {
  constexpr std::string_view key = "MemTotal:";
  const std::string text = text_of(proc / "meminfo");
  const std::size_t at = text.find(key);
  if (at == std::string::npos)
    return unknown;
  const auto kibibytes = number_in(std::string_view(text).substr(at + key.size()));
  return kibibytes && *kibibytes < (unknown >> 10) ? *kibibytes << 10 : unknown;
}

/// The least limit of a cgroup and those above it. Inside a container the group's path may be that
/// of the host, of which only the root is there to see.
std::uint64_t least_limit(const std::filesystem::path &root, std::string_view group,
                          const char *file) {
  std::uint64_t least = unknown;
  std::filesystem::path below = std::filesystem::path(group).relative_path();
  for (;;) {
    if (const auto limit = number_in(text_of(root / below / file)))
      least = std::min(least, *limit);
    if (below.empty())
      return least;
    below = below.parent_path();
  }
}

/// Lines of /proc/self/cgroup: "NUMBER:CONTROLLERS:PATH"; version 2 names no controllers.
std::uint64_t cgroup_limit(const system_roots &roots) {
  std::uint64_t least = unknown;
  std::istringstream lines(text_of(roots.proc / "self" / "cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    const std::string controllers =
        fmt::format(",{},", std::string_view(line).substr(first + 1, second - first - 1));
    const std::string_view group = std::string_view(line).substr(second + 1);
    if (controllers == ",,")
      least = std::min(least, least_limit(roots.cgroups, group, "memory.max"));
    else if (controllers.find(",memory,") != std::string::npos)
      least =
          std::min(least, least_limit(roots.cgroups / "memory", group, "memory.limit_in_bytes"));
  }
  return least;
}

} // namespace

std::uint64_t machine_memory(const system_roots &roots) {
  const std::uint64_t least = std::min(total_memory(roots.proc), cgroup_limit(roots));
  return least == unknown ? 0 : least;
}

std::uint64_t effective_memory_limit(std::uint64_t configured, const system_roots &roots) {
  return configured != 0 ? configured : std::max(machine_memory(roots) / 4, least_default);
}

} // namespace millrace
