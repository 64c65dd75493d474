// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/trainer_config.hpp"

#include "actors/trainer/policies.hpp"

namespace millrace {

std::vector<error> trainer_config::validate(std::uint32_t vocab_size) const {
  std::vector<error> errors;
  if (const auto known = check_policy_name(policy); !known)
    errors.push_back(known.error());
  if (policy == bigram_policy::name && (vocab_size < 2 || vocab_size > largest_bigram_vocab))
    errors.push_back(
        {errc::bad_config, fmt::format("vocab_size = {}: trainer.policy \"bigram\" has a table of "
                                       "vocab_size x vocab_size: set it to 2 to {}",
                                       vocab_size, largest_bigram_vocab)});
  return errors;
}

} // namespace millrace
