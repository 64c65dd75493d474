// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

namespace millrace {

/// Where the system tells about itself.
struct system_roots {
  std::filesystem::path proc = "/proc";
  std::filesystem::path cgroups = "/sys/fs/cgroup";
};

/// Memory that this process may use: that of the machine, or the limit of its cgroup (version 1 or
/// 2) or of one above it, whichever is least. Unit: bytes. 0 if the system does not say.
std::uint64_t machine_memory(const system_roots &roots = {});

/// memory.limit as it is in effect: `configured`, or, if that is 0, a quarter of machine_memory(),
/// at least 64 MiB. Unit: bytes.
std::uint64_t effective_memory_limit(std::uint64_t configured, const system_roots &roots = {});

} // namespace millrace
