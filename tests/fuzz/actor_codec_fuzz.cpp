// SPDX-License-Identifier: Apache-2.0
// A message between actors from outside: what is let in can be sent on and read again.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "actors/node/codec.hpp"
#include "tests/support/fuzz_parts.hpp"

namespace {

using namespace millrace;

class silent_peer final : public remote_peer {
public:
  void send(parcel) override {}
  bool can_take() const override { return true; }
  std::int64_t room() const override { return 0; }
};

peer resolve(const peer_id &id) { return {id, std::make_shared<silent_peer>()}; }

} // namespace

/// Input: parts, each a u32 size and its bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const auto got = decode(test::parts_from(std::as_bytes(std::span(data, size))), resolve);
  if (!got)
    return 0;
  const auto sent = encode(got->what, got->to);
  const auto again = decode(sent.parts, resolve);
  if (!again || again->to != got->to)
    __builtin_trap();
  if (test::input_of(encode(again->what, again->to).parts) != test::input_of(sent.parts))
    __builtin_trap(); // a field was lost or changed
  return 0;
}
