// SPDX-License-Identifier: Apache-2.0
#include "actors/packer/pruned.hpp"

#include <cstddef>

namespace millrace {

void write_pruned(std::span<const float> advantages, float value, float *out) noexcept {
  for (std::size_t i = 0; i < advantages.size(); ++i)
    out[i] = advantages[i] != 0.0F ? value : 0.0F;
}

} // namespace millrace
