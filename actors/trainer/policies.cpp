// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/policies.hpp"

#include "actors/trainer/plugin_policy.hpp"
#include "actors/trainer/replay_policy.hpp"

namespace millrace {

namespace {

bool is_path(std::string_view name) { return name.find('/') != std::string_view::npos; }

} // namespace

status check_policy_name(std::string_view name) {
  if (name == replay_policy::name || name == bigram_policy::name || is_path(name))
    return {};
  return fail(errc::bad_config,
              "trainer.policy: there is no '{}'; there is: {}, {}, or the path of a library, with "
              "a slash in it: './libmine.so'",
              name, replay_policy::name, bigram_policy::name);
}

result<std::unique_ptr<policy>> make_policy(const trainer_config &config,
                                            const policy_place &place) {
  MILLRACE_TRY(check_policy_name(config.policy));
  if (config.policy == replay_policy::name)
    return std::make_unique<replay_policy>();
  if (config.policy == bigram_policy::name)
    return std::make_unique<bigram_policy>(bigram_options{place.vocab_size, config.learning_rate},
                                           place.rank == 0 ? place.board : nullptr);
  return load_policy({config.policy, config.policy_options, place.rank, place.ranks});
}

} // namespace millrace
