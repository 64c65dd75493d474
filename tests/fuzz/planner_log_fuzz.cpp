// SPDX-License-Identifier: Apache-2.0
// A planner's log from outside: records come in order, each one that could be written again, and
// what is said of the end covers the rest of the file.
#include <cstddef>
#include <cstdint>

#include "schema/inspect_log.hpp"
#include "tests/support/fuzz_records.hpp"

using namespace millrace;

/// Input: a byte (odd: checksums are repaired), then the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size == 0)
    return 0;
  const auto bytes = test::file_from(data, size);
  std::uint64_t last = 0;
  std::uint64_t records = 0;
  const auto extent =
      read_planner_log(bytes, "fuzz", [&](std::uint64_t offset, const log_record &what) -> status {
        if (offset <= last || !encode(what))
          __builtin_trap();
        last = offset;
        ++records;
        return {};
      });
  const auto summary = inspect_log(bytes, "fuzz");
  if (extent && (extent->records != records ||
                 extent->bytes + (extent->torn ? extent->torn->bytes : 0) != bytes.size()))
    __builtin_trap();
  if (!summary)
    return 0;
  if (summary->damage.empty() != extent.has_value())
    __builtin_trap();
  static_cast<void>(text_of(*summary));
  static_cast<void>(json::dump(json_of(*summary)));
  return 0;
}
