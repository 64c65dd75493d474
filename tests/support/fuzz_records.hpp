// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "runtime/crc32c.hpp"
#include "schema/record_framing.hpp"

namespace millrace::test {

/// Makes the checksums of a file of records fit, as far as their lengths lead: mutations of what
/// they protect would otherwise all end at the checksum.
inline void repair(std::span<std::byte> bytes) {
  namespace format = recording_format;
  const auto crc_at = [&](std::size_t at, std::size_t size, std::size_t place) {
    const auto crc = crc32c(bytes.subspan(at, size));
    std::memcpy(bytes.data() + place, &crc, sizeof crc);
  };
  if (bytes.size() < sizeof(format::file_header))
    return;
  crc_at(0, 60, 60);
  std::size_t at = sizeof(format::file_header);
  while (bytes.size() - at >= sizeof(format::record_header)) {
    format::record_header header;
    std::memcpy(&header, bytes.data() + at, sizeof header);
    if (header.body_bytes <= bytes.size() - at - sizeof header)
      crc_at(at + sizeof header, header.body_bytes, at + 24);
    crc_at(at, 28, at + 28);
    if (header.body_bytes > bytes.size() - at - sizeof header)
      return;
    at += sizeof header + header.body_bytes;
  }
}

/// A file from a fuzzer's input: a byte (odd: checksums are repaired), then its bytes.
/// Precondition: size > 0.
inline frame file_from(const std::uint8_t *data, std::size_t size) {
  buffer file(size - 1);
  if (size > 1)
    std::memcpy(file.data(), data + 1, size - 1);
  if ((data[0] & 1) != 0)
    repair(file.bytes());
  return std::move(file).freeze();
}

} // namespace millrace::test
