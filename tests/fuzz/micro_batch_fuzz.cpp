// SPDX-License-Identifier: Apache-2.0
// A micro batch from outside: what is let in must be safe to widen, count and digest.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "actors/packer/micro_batch.hpp"
#include "actors/trainer/micro_batch_digest.hpp"
#include "actors/trainer/tensors.hpp"

/// Input: u32 size of the body, the body, and what is left as one array part.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace millrace;
  std::uint32_t body = 0;
  if (size < sizeof body)
    return 0;
  std::memcpy(&body, data, sizeof body);
  const auto rest = std::as_bytes(std::span(data, size)).subspan(sizeof body);
  const auto first = rest.first(body < rest.size() ? body : rest.size());
  message parts{frame::copy_of(first)};
  if (first.size() < rest.size())
    parts.push_back(frame::copy_of(rest.subspan(first.size())));
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
