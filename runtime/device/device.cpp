// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/device.hpp"

#include <charconv>

#include "runtime/device/cuda/device.hpp"
#include "runtime/device/host/device.hpp"

namespace millrace {

std::vector<device_info> devices() {
  std::vector<device_info> all{{"host", "this machine's processor"}};
  if (const auto models = cuda_models())
    for (std::size_t i = 0; i < models->size(); ++i)
      all.push_back({fmt::format("cuda:{}", i), (*models)[i]});
  return all;
}

result<std::unique_ptr<device>> make_device(std::string_view name) {
  constexpr std::string_view cuda = "cuda:";
  if (name == "host")
    return make_host_device();
  if (name == "cuda")
    return make_cuda_device(0);
  if (name.starts_with(cuda)) {
    int index = 0;
    const auto *const end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + cuda.size(), end, index);
    if (read.ec == std::errc() && read.ptr == end && index >= 0)
      return make_cuda_device(index);
  }
  return fail(errc::bad_argument, "there is no device '{}'; use host, cuda or cuda:N", name);
}

} // namespace millrace
