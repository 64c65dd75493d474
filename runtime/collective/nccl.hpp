// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "runtime/collective/collective.hpp"
#include "runtime/collective/gloo.hpp"

namespace millrace {

struct nccl_options {
  int rank = 0;
  int size = 1;
  /// The GPU of this rank, as in "cuda:N". NCCL wants one for each rank of a machine.
  int device = 0;
  /// Put before every key: jobs that share a store, and generations of a job, differ in it, so that
  /// a rank of an older one never meets those of a newer.
  std::string prefix = {};
  /// For each exchange.
  std::chrono::milliseconds deadline{30'000};
  /// For joining, which loads kernels and looks at the machine: seconds, and more with many ranks.
  std::chrono::milliseconds join_deadline{120'000};
};

/// A rank over NCCL. Ranks find each other, and hear that one has left, over the store that Gloo's
/// ranks use: no shared disk. Blocks until all ranks have joined.
/// Errors: unsupported: this build has no NCCL, or libnccl.so.2 is not here or too old; not_found:
/// no driver or no GPU here; timed_out, peer_lost: as join_gloo().
/// Thread: as `collective`; a rank has one thread of its own, which waits for the store. Whoever
/// joins, aborts or destroys it publishes in the store.
result<std::unique_ptr<collective>> join_nccl(const nccl_options &options, const gloo_store &store);

/// Whether this process can join, and why not: NCCL and a GPU are here.
status nccl_is_here();

} // namespace millrace
