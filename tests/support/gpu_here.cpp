// SPDX-License-Identifier: Apache-2.0
// Says which GPU tests would run on and ends with 0, or says why there is none and ends with 77, as
// CTests of label gpu do that are skipped.
#include <fmt/core.h>

#include "runtime/device/device.hpp"

int main() {
  const auto made = millrace::make_device("cuda");
  if (made) {
    fmt::print("{}\n", (*made)->name());
    return 0;
  }
  fmt::print("skipped: {}\n", made.error().message);
  return 77;
}
