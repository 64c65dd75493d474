// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "runtime/frame.hpp"

namespace millrace::test {

/// The parts of a message in one fuzzer input: each a u32 size and its bytes. The last one takes
/// what is there.
inline message parts_from(std::span<const std::byte> input) {
  message parts;
  while (input.size() >= sizeof(std::uint32_t) && parts.size() < 1000) {
    std::uint32_t size = 0;
    std::memcpy(&size, input.data(), sizeof size);
    input = input.subspan(sizeof size);
    const auto part = input.first(size < input.size() ? size : input.size());
    parts.push_back(frame::copy_of(part));
    input = input.subspan(part.size());
  }
  return parts;
}

/// The input that parts_from() reads back.
inline std::string input_of(const message &parts) {
  std::string out;
  for (const auto &part : parts) {
    const auto size = static_cast<std::uint32_t>(part.size());
    out.append(reinterpret_cast<const char *>(&size), sizeof size);
    out.append(reinterpret_cast<const char *>(part.data()), part.size());
  }
  return out;
}

} // namespace millrace::test
