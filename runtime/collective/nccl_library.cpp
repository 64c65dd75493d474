// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/nccl_library.cuh"

#include <string>

#include <dlfcn.h>

namespace millrace {

namespace {

/// Where the machine keeps it, then where the build found it.
result<void *> open_library() {
  constexpr int how = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  std::string why;
  for (const char *const name : {"libnccl.so.2", MILLRACE_NCCL_LIBRARY}) {
    if (void *const opened = ::dlopen(name, how); opened != nullptr)
      return opened;
    const char *const text = ::dlerror();
    why += fmt::format("{}{}", why.empty() ? "" : "; ", text == nullptr ? name : text);
  }
  return fail(errc::unsupported, "dlopen: {}: install NCCL 2, or set LD_LIBRARY_PATH to its folder",
              why);
}

template <class Function> status find(void *library, const char *name, Function &function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr)
    return fail(errc::unsupported, "dlsym: libnccl.so.2 has no {}", name);
  return {};
}

} // namespace

result<std::shared_ptr<const nccl_library>> nccl_library::load() {
  const auto opened = open_library();
  if (!opened)
    return tl::unexpected<error>(opened.error());
  auto calls = std::make_shared<nccl_library>();
  MILLRACE_TRY(find(*opened, "ncclGetVersion", calls->get_version));
  MILLRACE_TRY(find(*opened, "ncclGetErrorString", calls->get_error_string));
  MILLRACE_TRY(find(*opened, "ncclGetLastError", calls->get_last_error));
  MILLRACE_TRY(find(*opened, "ncclGetUniqueId", calls->get_unique_id));
  MILLRACE_TRY(find(*opened, "ncclCommInitRankConfig", calls->comm_init_rank_config));
  MILLRACE_TRY(find(*opened, "ncclCommGetAsyncError", calls->comm_get_async_error));
  MILLRACE_TRY(find(*opened, "ncclCommFinalize", calls->comm_finalize));
  MILLRACE_TRY(find(*opened, "ncclCommDestroy", calls->comm_destroy));
  MILLRACE_TRY(find(*opened, "ncclCommAbort", calls->comm_abort));
  MILLRACE_TRY(find(*opened, "ncclAllGather", calls->all_gather));
  int version = 0;
  if (calls->get_version(&version) != ncclSuccess ||
      version < NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, 0))
    return fail(errc::unsupported, "libnccl.so.2 has version {}, this build wants {}.{} or later",
                version, NCCL_MAJOR, NCCL_MINOR);
  return calls;
}

} // namespace millrace
