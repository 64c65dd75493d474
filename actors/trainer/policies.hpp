// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "actors/trainer/bigram_policy.hpp"
#include "actors/trainer/policy.hpp"
#include "actors/trainer/trainer_config.hpp"

namespace millrace {

/// Errors: bad_config, with the names that there are, for one that is neither a policy of
/// millrace's own nor the path of a library.
status check_policy_name(std::string_view name);

struct policy_place {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::uint32_t vocab_size = 0;
  std::shared_ptr<bigram_board> board = {}; ///< where rank 0 shows its parameters; may be null
};

/// The policy that a config names. Errors: bad_config, those of load_policy().
result<std::unique_ptr<policy>> make_policy(const trainer_config &config,
                                            const policy_place &place);

} // namespace millrace
