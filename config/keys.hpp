// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "actors/run_config.hpp"
#include "config/key.hpp"

namespace millrace {

/// Every key of a run but those of environments, in the order of docs/config.md.
std::span<const key<run_config>> run_keys();

/// Every key of an environment, without "env.NAME." before it.
std::span<const key<env_config>> env_keys();

} // namespace millrace
