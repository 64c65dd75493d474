// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "actors/interfaces.hpp"

namespace millrace {

/// Whose turn it is among the groups whose answers cannot be had twice. Those with the same key
/// rest on each other and take turns, one at a time: in deterministic order by place, each when all
/// groups of lower ordinals are known, else as they come. Those without a key wait for nobody.
///
/// A group:  (none) --want--> waiting --next--> in turn --finish--> (none)
///                              ^-----want-------+   (another scorer asks)
class score_turns {
public:
  struct turn {
    group_ref group;
    std::string key; ///< may be empty
    peer scorer;
  };

  explicit score_turns(bool deterministic) : deterministic_(deterministic) {}

  /// A scorer asks; it takes the place of one that asked before.
  void want(turn one);

  /// The next group whose turn has come; it is in turn from now on.
  /// @param is_known tells of groups that need no turn: they are scored, or end without.
  std::optional<turn> next(const std::function<bool(group_ref)> &is_known);

  /// It has its answer, or never will.
  void finish(group_ref ref);
  /// The key of a group that is in turn; null: it is not.
  const std::string *in_turn(group_ref ref) const;
  void clear();

private:
  struct entry {
    turn what;
    group_ref order; ///< among those of its key
    bool given = false;
  };

  const bool deterministic_;
  std::map<group_ref, entry> wanted_;                            ///< waiting and in turn
  std::map<std::string, std::map<group_ref, group_ref>> by_key_; ///< order to group
  std::map<group_ref, group_ref> asked_;                         ///< without key, and not given
  std::uint64_t arrivals_ = 0;
  std::uint64_t known_below_ = 0; ///< deterministic: all groups below it are known
};

} // namespace millrace
