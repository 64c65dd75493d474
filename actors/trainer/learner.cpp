// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/learner.hpp"

#include "actors/trainer/replay_policy.hpp"

namespace millrace {

result<std::unique_ptr<learner>> make_learner(std::string_view name) {
  if (name == replay_policy::name)
    return std::make_unique<replay_policy>();
  return fail(errc::bad_config, "trainer.policy: there is no '{}'; there is: {}", name,
              replay_policy::name);
}

} // namespace millrace
