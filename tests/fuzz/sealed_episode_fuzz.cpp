// SPDX-License-Identifier: Apache-2.0
// A sealed episode from outside: what is let in has the shape that the maths counts on.
#include <cstddef>
#include <cstdint>
#include <span>

#include "schema/sealed_episode.hpp"
#include "tests/support/fuzz_parts.hpp"

/// Input: parts, each a u32 size and its bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace millrace;
  const auto episode =
      sealed_episode::parse(test::parts_from(std::as_bytes(std::span(data, size))));
  if (!episode || !check_elements(*episode, {100'000}))
    return 0;
  std::uint64_t tokens = 0;
  for (std::size_t t = 0; t < episode->trace_count(); ++t)
    for (const auto &node : episode->nodes(t)) {
      if (node.mask.size() != node.token_ids.size() ||
          node.logprobs.size() != count_true(node.mask))
        __builtin_trap();
      tokens += node.token_ids.size();
    }
  if (tokens != episode->tokens())
    __builtin_trap();
  return 0;
}
