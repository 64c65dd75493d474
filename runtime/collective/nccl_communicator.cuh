// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>

#include "runtime/collective/nccl_library.cuh"
#include "runtime/device/cuda/handles.cuh"

namespace millrace {

/// A rank's part of an NCCL communicator, and the memory that its kernels use: all that must stay
/// where it is while a kernel waits for a rank that does not come.
struct nccl_communicator {
  std::shared_ptr<const nccl_library> calls;
  int device = 0;
  ncclComm_t handle = nullptr; ///< null before it was asked for
  cuda_stream stream;
  cuda_event done;
  cuda_memory sent;
  cuda_memory gathered;
  pinned_memory staging; ///< what is sent, then what is gathered

  nccl_communicator(std::shared_ptr<const nccl_library> functions, int index) noexcept
      : calls(std::move(functions)), device(index) {}

  /// Errors: those of making a stream and an event; the message begins with the call's name.
  status open();
  /// Makes room for blocks of `block` bytes. It grows and never shrinks.
  status make_room(std::size_t block, std::size_t ranks);
  /// Errors: peer_lost, io; the message begins with the call's name.
  status check(ncclResult_t code, std::string_view call) const;
};

/// Gives a communicator up. NCCL may hang in this, and so may CUDA in freeing what a stuck kernel
/// uses (NVIDIA/nccl issues 585, 863, 1777): so a thread of its own does it, and is left behind
/// with everything after `grace`, which the log says.
/// @param whole nothing has failed: what is still on the way to other ranks goes there first.
void give_up(std::unique_ptr<nccl_communicator> one, bool whole, std::chrono::seconds grace);

} // namespace millrace
