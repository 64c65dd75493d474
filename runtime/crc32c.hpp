// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace {

/// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78) of `bytes`, going on from `crc`.
/// Source: RFC 3720, appendix B.4. Hardware where the processor has SSE 4.2, tables elsewhere: the
/// same value.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0) noexcept;

} // namespace millrace
