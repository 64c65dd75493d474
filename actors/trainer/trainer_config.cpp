// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/trainer_config.hpp"

#include "actors/trainer/learner.hpp"

namespace millrace {

std::vector<error> trainer_config::validate() const {
  std::vector<error> errors;
  if (const auto made = make_learner(policy); !made)
    errors.push_back(made.error());
  return errors;
}

} // namespace millrace
