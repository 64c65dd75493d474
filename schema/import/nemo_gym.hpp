// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/import/record.hpp"

namespace millrace {

/// Rollouts of NeMo Gym: a rollout a line, whose model turns carry the token ids of their prompt
/// and of what was sampled. Source: docs/import.md, "NeMo Gym rollouts".
extern const record_format nemo_gym_format;

} // namespace millrace
