// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "actors/interfaces.hpp"

namespace millrace {

/// The planner, to an actor that follows whoever says hello: answers go to the start that spoke
/// last, since its name alone may still stand for the start before, which is dead. Another folder's
/// planner soon ends, and the first one does not say hello again: from then on the name counts.
class leader {
public:
  /// @param by_name whoever has the planner's name
  explicit leader(peer by_name) : by_name_(std::move(by_name)) {}

  /// Takes a hello. @returns false if it is late, or said twice.
  bool follow(const planner_hello &in) {
    const bool other_folder = claim_.epoch != 0 && in.claim.folder != claim_.folder;
    if (!other_folder && in.claim.epoch <= claim_.epoch)
      return false;
    claim_ = in.claim;
    last_ = other_folder ? peer() : in.planner;
    return true;
  }
  const peer &who() const noexcept { return last_ ? last_ : by_name_; }
  /// Epoch 0: nobody has said hello.
  const planner_claim &claim() const noexcept { return claim_; }

private:
  peer by_name_;
  peer last_; ///< none: by_name_
  planner_claim claim_;
};

} // namespace millrace
