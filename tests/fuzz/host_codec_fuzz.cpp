// SPDX-License-Identifier: Apache-2.0
// A message between processes from outside: what is let in can be sent on and read again.
#include <cstddef>
#include <cstdint>
#include <span>

#include "actors/node/host_codec.hpp"
#include "tests/support/random_host_parcels.hpp"

/// Input: the one part.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace millrace;
  const message parts{frame::copy_of(std::as_bytes(std::span(data, size)))};
  const auto got = decode_host(parts);
  if (!got)
    return 0;
  const auto sent = encode(*got);
  const auto again = decode_host(sent);
  if (!is_host_message(parts) || !is_host_message(sent) || !again || !test::same(*got, *again))
    __builtin_trap();
  return 0;
}
