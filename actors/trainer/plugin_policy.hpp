// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "actors/trainer/policy.hpp"

namespace millrace {

struct plugin_options {
  std::filesystem::path library;
  std::string options; ///< for the library, as the config says it
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
};

/// A policy in a shared library that speaks policy_abi.h. It runs in this process and with its
/// rights: load only what you trust. Errors: not_found (no such file), bad_config (what does not
/// load, exports no millrace_policy, speaks another ABI, lacks a function, or does not take its
/// options), each with the library's name and its reason.
result<std::unique_ptr<policy>> load_policy(const plugin_options &options);

} // namespace millrace
