// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "actors/loss/loss_columns.hpp"
#include "actors/trainer/tensors.hpp"

namespace millrace {

/// A micro batch as the losses read it. Valid while the tensors live unchanged.
loss_columns loss_view(const micro_batch_tensors &tensors);

} // namespace millrace
