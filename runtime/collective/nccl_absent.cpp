// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/nccl.hpp"

// In the place of nccl.cpp in builds without NCCL.

namespace millrace {

status nccl_is_here() {
  return fail(errc::unsupported,
              "this build has no NCCL: configure with -DMILLRACE_CUDA=ON -DMILLRACE_NCCL=ON");
}

result<std::unique_ptr<collective>> join_nccl(const nccl_options &, const gloo_store &) {
  return tl::unexpected<error>(nccl_is_here().error());
}

} // namespace millrace
