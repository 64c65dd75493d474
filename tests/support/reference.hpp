// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "actors/scorer/reference.hpp"
#include "tests/support/groups.hpp"

namespace millrace::test {

/// What a reference policy says of all that a group lacks: value `-(t + 1)` at position t of each
/// branch, but NaN at position 0.
struct given_reference {
  given_reference(const body<wire::GroupHeader> &header, const std::vector<frame_data> &episodes);

  std::vector<sealed_episode> sealed; ///< owns what `values` points into
  reference_logprobs values;
};

} // namespace millrace::test
