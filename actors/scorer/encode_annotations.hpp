// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "actors/scorer/verdict.hpp"
#include "runtime/frame.hpp"

namespace millrace {

/// The verdict on a group as a wire::GroupAnnotations body.
frame encode_annotations(const wire::GroupHeader &group, const group_verdict &verdict,
                         std::string_view algorithm);

} // namespace millrace
