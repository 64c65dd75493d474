// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace::test {

/// Bytes that operator new has given out since the program began. Link counted_new.cpp, which
/// replaces it; it stands in a file of its own, since GCC takes an inlined pair of new and free()
/// for a mistake.
std::uint64_t allocated_bytes() noexcept;

} // namespace millrace::test
