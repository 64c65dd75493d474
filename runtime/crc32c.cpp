// SPDX-License-Identifier: Apache-2.0
#include "runtime/crc32c.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

// Debian 12 has no library for CRC-32C (docs/dependencies.md), so these are ours.
namespace millrace {

namespace {

constexpr std::uint32_t polynomial = 0x82F63B78U;

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1U) != 0 ? polynomial : 0U);
    table[i] = crc;
  }
  return table;
}

constexpr auto table = make_table();

std::uint32_t update_by_table(std::uint32_t crc, std::span<const std::byte> bytes) noexcept {
  for (auto byte : bytes)
    crc = (crc >> 8) ^ table[(crc ^ static_cast<std::uint32_t>(byte)) & 0xFFU];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t
update_by_hardware(std::uint32_t crc, std::span<const std::byte> bytes) noexcept {
  std::uint64_t wide = crc;
  while (bytes.size() >= 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    wide = _mm_crc32_u64(wide, word);
    bytes = bytes.subspan(8);
  }
  crc = static_cast<std::uint32_t>(wide);
  for (auto byte : bytes)
    crc = _mm_crc32_u8(crc, static_cast<std::uint8_t>(byte));
  return crc;
}
#endif

} // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
  crc = ~crc;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2") != 0)
    return ~update_by_hardware(crc, bytes);
#endif
  return ~update_by_table(crc, bytes);
}

} // namespace millrace
