// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/field_reader.hpp"
#include "schema/log_records.hpp"

namespace millrace {

/// What every record of the planner's log must be, by itself, whether it is about to be written or
/// was read. `in` keeps the first failure: too_large, bad_value, bad_format.
void check(field_reader &in, const log_open &what);
void check(field_reader &in, const log_generation &what);
void check(field_reader &in, const log_commit &what);
void check(field_reader &in, const log_settled &what);
void check(field_reader &in, const log_scored &what);
void check(field_reader &in, const log_trained &what);
void check(field_reader &in, const log_durable &what);
void check(field_reader &in, const log_rolled_back &what);

} // namespace millrace
