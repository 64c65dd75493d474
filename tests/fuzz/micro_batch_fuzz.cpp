// SPDX-License-Identifier: Apache-2.0
// A micro batch from outside: what is let in must be safe to widen, count and digest.
// Input: u8 number of array parts; for each a u32 size and its bytes; the body is what is left.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "actors/packer/micro_batch.hpp"
#include "actors/trainer/micro_batch_digest.hpp"
#include "actors/trainer/tensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace millrace;
  if (size == 0)
    return 0;
  auto rest = std::as_bytes(std::span(data, size)).subspan(1);
  message parts(1);
  for (std::uint8_t i = 0; i < data[0]; ++i) {
    std::uint32_t length = 0;
    if (rest.size() < sizeof length)
      return 0;
    std::memcpy(&length, rest.data(), sizeof length);
    rest = rest.subspan(sizeof length);
    const auto taken = std::min<std::size_t>(length, rest.size());
    parts.push_back(frame::copy_of(rest.first(taken)));
    rest = rest.subspan(taken);
  }
  parts.front() = frame::copy_of(rest);
  const auto batch =
      micro_batch::parse(std::move(parts), nullptr, {.tokens = 1U << 16, .tensor_bytes = 1U << 24});
  if (!batch)
    return 0;
  static_cast<void>(check_arrays(*batch));
  micro_batch_tensors tensors;
  widen(*batch, tensors);
  static_cast<void>(count_components(tensors));
  static_cast<void>(digest_of(tensors));
  return 0;
}
