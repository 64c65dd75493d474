// SPDX-License-Identifier: Apache-2.0
#include "actors/run_config.hpp"

namespace millrace {

const env_config &run_config::env(std::string_view name) const {
  const auto found = envs.find(name);
  return found == envs.end() ? env_default : found->second;
}

std::vector<error> run_config::validate() const {
  std::vector<error> errors;
  auto take = [&errors](const std::vector<error> &part) {
    errors.insert(errors.end(), part.begin(), part.end());
  };
  take(source.validate());
  take(batch.validate());
  take(plan.validate());
  take(env_default.validate("env_default"));
  for (const auto &[name, env] : envs)
    take(env.validate("env." + name));
  return errors;
}

} // namespace millrace
