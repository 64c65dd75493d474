// SPDX-License-Identifier: Apache-2.0
// Every body, as it comes from a socket or a file. An input is one message: a byte that shifts the
// bytes of part 0 in memory, a byte with the number of array parts, the u32 length of each, their
// bytes, then part 0, whose identifier says which body it is.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "schema/body.hpp"
#include "schema/episode.hpp"
#include "schema/sealed_episode.hpp"

using namespace millrace;

namespace {

/// Takes up to `size` bytes off the front of `rest`.
std::span<const std::byte> take(std::span<const std::byte> &rest, std::size_t size) {
  const auto taken = rest.first(std::min(size, rest.size()));
  rest = rest.subspan(taken.size());
  return taken;
}

std::uint32_t take_number(std::span<const std::byte> &rest, std::size_t size) {
  std::uint32_t number = 0;
  const auto bytes = take(rest, size);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte *>(&number));
  return number;
}

frame shifted(std::span<const std::byte> bytes, std::size_t shift) {
  buffer memory(bytes.size() + shift);
  std::copy(bytes.begin(), bytes.end(), memory.data() + shift);
  return std::move(memory).freeze(shift, bytes.size());
}

message read_message(std::span<const std::byte> input) {
  const auto shift = take_number(input, 1) % 8;
  const auto arrays = take_number(input, 1) % 16;
  message parts(1);
  for (std::uint32_t i = 0; i < arrays; ++i)
    parts.push_back(frame::copy_of(take(input, take_number(input, 4))));
  parts[0] = shifted(input, shift);
  return parts;
}

/// Reads what a stage would read of a frame that passed.
void read(const episode_frame &frame) {
  if (!check_elements(frame, {.vocab_size = 1000}))
    return;
  std::size_t seen = 0;
  for (std::uint32_t i = 0; i < frame.node_count(); ++i) {
    const auto node = frame.node(i);
    seen += count_true(node.mask);
    if (seen > frame.bytes() || node.logprobs.size() > node.token_ids.size())
      std::abort(); // passed, though an array says more than there is
  }
}

void read(const sealed_episode &episode) {
  for (const auto &frame : episode.frames())
    read(frame);
  for (std::size_t trace = 0; trace < episode.trace_count(); ++trace)
    for (const auto &node : episode.nodes(trace))
      if (node.parent >= 0 &&
          static_cast<std::uint32_t>(node.parent) >= episode.node_count(trace) &&
          check_elements(episode, {}))
        std::abort(); // passed, though a parent is not there
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const auto parts = read_message(std::as_bytes(std::span(data, size)));
  if (const auto frame = episode_frame::parse(parts))
    read(*frame);
  if (const auto episode = sealed_episode::parse(parts))
    read(*episode);
  (void)parse<wire::GroupHeader>(parts[0]);
  (void)parse<wire::GroupAnnotations>(parts[0]);
  (void)parse<wire::BinPlan>(parts[0]);
  (void)parse<wire::MicroBatch>(parts[0]);
  (void)parse<wire::GroupSize>(parts[0]);
  (void)parse<wire::EpisodeText>(parts[0]);
  (void)parse<wire::RecordingIndex>(parts[0]);
  (void)parse<wire::JournalOpen>(parts[0]);
  (void)parse<wire::JournalArrival>(parts[0]);
  return 0;
}
