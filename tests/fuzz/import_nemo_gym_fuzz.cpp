// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/import_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  millrace::fuzz::import_bytes(data, size);
  return 0;
}
