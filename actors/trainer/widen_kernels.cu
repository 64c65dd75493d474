// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/widen_kernels.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>

#include "runtime/device/for_each.hpp"
#ifdef __CUDACC__
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/transform_iterator.h>
#endif

namespace millrace {

namespace {

struct widen_each_token {
  widen_job job;
  MILLRACE_DEVICE_FN void operator()(std::size_t i) const { widen_token(job, i); }
};

struct widen_each_sequence {
  widen_job job;
  MILLRACE_DEVICE_FN void operator()(std::size_t s) const { widen_sequence(job, s); }
};

#ifdef __CUDACC__
struct count_valued {
  MILLRACE_DEVICE_FN std::uint32_t operator()(std::uint8_t flags) const { return is_valued(flags); }
};

status count_before_on_cuda(device &on, const widen_job &job) {
  const auto stream = compute_stream(on);
  if (!stream)
    return tl::unexpected<error>(stream.error());
  MILLRACE_ASSERT(job.tokens <= std::numeric_limits<int>::max(), "{} tokens", job.tokens);
  const auto tokens = static_cast<int>(job.tokens);
  const auto ones = thrust::make_transform_iterator(job.flags, count_valued());
  const auto sum = [&](void *scratch, std::size_t &bytes) {
    return cuda_status(
        cub::DeviceScan::ExclusiveSum(scratch, bytes, ones, job.valued_before, tokens, *stream),
        "cub::DeviceScan::ExclusiveSum");
  };
  std::size_t bytes = 0;
  MILLRACE_TRY(sum(nullptr, bytes)); // only says how much it needs
  const auto scratch = on.allocate(bytes);
  if (!scratch)
    return tl::unexpected<error>(scratch.error());
  return sum(scratch->data(), bytes);
}
#endif

/// One thing after the other: each count rests on the one before.
status count_before(device &on, const widen_job &job) {
#ifdef __CUDACC__
  if (on.kind() == device_kind::cuda)
    return count_before_on_cuda(on, job);
#endif
  MILLRACE_ASSERT(on.kind() == device_kind::host, "compiled without CUDA, for {}", on.name());
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < job.tokens; ++i) {
    job.valued_before[i] = count;
    count += is_valued(job.flags[i]);
  }
  return {};
}

} // namespace

status run_widening(device &on, const widen_job &job) {
  MILLRACE_TRY(count_before(on, job));
  MILLRACE_TRY(for_each(on, job.tokens + job.padding, widen_each_token{job}));
  return for_each(on, job.sequences, widen_each_sequence{job});
}

} // namespace millrace
