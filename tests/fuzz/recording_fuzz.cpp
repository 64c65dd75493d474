// SPDX-License-Identifier: Apache-2.0
// A recording from outside: whatever it holds, its bytes are read, skipped or torn, each once.
#include <cstddef>
#include <cstdint>

#include "schema/inspect.hpp"
#include "tests/support/fuzz_records.hpp"

using namespace millrace;

/// Input: a byte (odd: checksums are repaired), then the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size == 0)
    return 0;
  const auto bytes = test::file_from(data, size);
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
