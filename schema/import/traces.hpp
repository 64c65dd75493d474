// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/import/record.hpp"

namespace millrace {

/// `traces.jsonl` of prime-rl and verifiers: an episode a line, with its traces and their message
/// nodes. Source: docs/import.md, "traces.jsonl".
extern const record_format traces_format;

} // namespace millrace
