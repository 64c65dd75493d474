// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/device.hpp"

namespace millrace {

namespace {

tl::unexpected<error> no_cuda() {
  return fail(errc::unsupported, "this build has no CUDA: configure with -DMILLRACE_CUDA=ON");
}

} // namespace

result<std::vector<std::string>> cuda_models() { return no_cuda(); }

result<std::unique_ptr<device>> make_cuda_device(int) { return no_cuda(); }

} // namespace millrace
