// SPDX-License-Identifier: Apache-2.0
#include "actors/run_config.hpp"

namespace millrace {

std::vector<error> run_config::validate() const {
  std::vector<error> errors;
  auto take = [&errors](const std::vector<error> &part) {
    errors.insert(errors.end(), part.begin(), part.end());
  };
  take(source.validate());
  take(batch.validate());
  return errors;
}

} // namespace millrace
