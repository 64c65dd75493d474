// SPDX-License-Identifier: Apache-2.0
// A recording from outside: whatever it holds, its bytes are read, skipped or torn, each once.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "runtime/crc32c.hpp"
#include "schema/inspect.hpp"

namespace {

using namespace millrace;
namespace format = recording_format;

/// Makes the checksums of the records fit, as far as their lengths lead: mutations of what they
/// protect would otherwise all end at the checksum.
void repair(std::span<std::byte> bytes) {
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

} // namespace

/// Input: a byte (odd: checksums are repaired), then the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size == 0)
    return 0;
  buffer file(size - 1);
  if (size > 1)
    std::memcpy(file.data(), data + 1, size - 1);
  if ((data[0] & 1) != 0)
    repair(file.bytes());
  const auto bytes = std::move(file).freeze();
  auto reader = recording_reader::over(bytes, "fuzz");
  if (!reader)
    return 0;
  std::uint64_t last = 0;
  while (const auto one = reader->next()) {
    if (one->offset < last)
      __builtin_trap();
    last = one->offset;
    for (const auto &part : one->parts)
      if (part.data() < bytes.data() || part.data() + part.size() > bytes.data() + bytes.size())
        __builtin_trap();
  }
  if (reader->position() != bytes.size() || reader->bytes_skipped() > bytes.size())
    __builtin_trap();
  const auto summary = inspect_recording(recording_reader::over(bytes, "fuzz").value());
  static_cast<void>(text_of(summary));
  static_cast<void>(json::dump(json_of(summary)));
  return 0;
}
