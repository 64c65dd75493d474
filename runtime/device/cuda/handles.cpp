// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/handles.cuh"

namespace millrace {

status cuda_status(cudaError_t code, std::string_view call) {
  if (code == cudaSuccess)
    return {};
  // It is also kept as "the last error", which the next kernel's launch would be blamed for.
  (void)cudaGetLastError();
  const auto *const name = cudaGetErrorName(code);
  const auto *const text = cudaGetErrorString(code);
  // What it says where there is no driver at all is that the driver is too old.
  if (code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver)
    return fail(errc::not_found, "{}: no GPU, or no driver for CUDA {}.{}, is here: {} ({})", call,
                CUDART_VERSION / 1000, CUDART_VERSION / 10 % 100, text, name);
  return fail(errc::io, "{}: {} ({})", call, text, name);
}

result<cuda_stream> make_cuda_stream() {
  cudaStream_t made = nullptr;
  MILLRACE_TRY_CUDA(cudaStreamCreateWithFlags, &made, cudaStreamNonBlocking);
  return cuda_stream(made);
}

result<cuda_event> make_cuda_event() {
  cudaEvent_t made = nullptr;
  MILLRACE_TRY_CUDA(cudaEventCreateWithFlags, &made, cudaEventDisableTiming);
  return cuda_event(made);
}

result<cuda_memory> make_cuda_memory(std::size_t size) {
  void *made = nullptr;
  MILLRACE_TRY_CUDA(cudaMalloc, &made, size);
  return cuda_memory(static_cast<std::byte *>(made), size);
}

result<pinned_memory> make_pinned_memory(std::size_t size) {
  void *made = nullptr;
  MILLRACE_TRY_CUDA(cudaHostAlloc, &made, size, cudaHostAllocDefault);
  return pinned_memory(static_cast<std::byte *>(made), size);
}

} // namespace millrace
