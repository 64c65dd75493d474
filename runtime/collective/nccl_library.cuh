// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <nccl.h>

#include "runtime/result.hpp"

namespace millrace {

/// The functions of libnccl.so.2 that are called. It is loaded when the first rank joins, not
/// linked: a linked one would keep the whole program from starting where it is missing, and most
/// processes of a run train nothing. nccl.h gives the types, so a function that changes does not
/// compile.
struct nccl_library {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetLastError) get_last_error = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&ncclCommFinalize) comm_finalize = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;

  /// It stays loaded: threads of its own may still run.
  /// Errors: unsupported: it is not here, or older than the nccl.h of this build.
  static result<std::shared_ptr<const nccl_library>> load();
};

} // namespace millrace
