// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "actors/trainer/tensors.hpp"
#include "runtime/digest.hpp"

namespace millrace {

/// The content digest of one micro batch and its place in the grid. It does not depend on how the
/// streams were encoded. Source: docs/formats.md, "Content digest".
struct micro_batch_digest {
  std::uint32_t rank = 0;
  std::uint32_t index = 0;
  digest128 digest;

  auto operator<=>(const micro_batch_digest &) const = default;
};
micro_batch_digest digest_of(const micro_batch_tensors &tensors);

/// The digest of all micro batches of one step, given in any order.
digest128 step_digest(std::vector<micro_batch_digest> batches);

/// The digest of a run: add its steps in ascending order, then ask.
class grid_hash {
public:
  /// @param batches all micro batches of the step, in any order. Precondition: `step` is larger
  /// than those before.
  void add_step(std::uint64_t step, std::vector<micro_batch_digest> batches);

  /// Over the steps so far; more may follow.
  digest128 value() const { return writer_.finish(); }

private:
  digest_writer writer_;
  std::optional<std::uint64_t> last_;
};

} // namespace millrace
