// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "schema/log_records.hpp"

namespace millrace::test {

/// The records of a planner that was started twice, with every kind among them, each of which
/// follows from those before it: steps 1 (durable), 2 (trained) and 3 (committed); earlier steps 2
/// and 3 were rolled back, of which 2 had been trained; two groups ended outside a step. Every
/// group has three episodes.
std::vector<log_record> sample_log();

} // namespace millrace::test
