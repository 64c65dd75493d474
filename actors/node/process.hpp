// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "actors/node/host_messages.hpp"
#include "actors/node/post.hpp"
#include "actors/node/wait_board.hpp"
#include "actors/run.hpp"

namespace millrace {

/// The name under which others know the directory's process before they have heard of it.
inline constexpr std::string_view directory_process = "directory";

/// Where and as whom a process opens its sockets. Errors: those of load_keys.
/// @param state its state folder: for "ipc" endpoints.
result<hub_options> hub_options_of(const run_config &config, const process_options &process,
                                   const std::filesystem::path &state, const actor_context &context,
                                   std::shared_ptr<memory_meter> memory);

/// What the directory is to know of a process: its name, its actors, its key.
process_entry entry_of(const process_options &process, const hub_options &options);

/// How it goes in this process, for its news. Thread: any.
struct status_source {
  std::string program;
  std::uint64_t memory_limit = 0;
  std::shared_ptr<run_counters> counters;
  std::weak_ptr<post> office;
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();

  process_status operator()() const;
};

/// Largest resident memory of this process so far. Unit: bytes.
std::uint64_t peak_rss();

} // namespace millrace
