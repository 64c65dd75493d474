// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "actors/interfaces.hpp"

namespace millrace {

/// A set of groups that is nearly all of them from the first on, as the groups that a run has done
/// are: per source a number below which all are in it, and those beyond.
class group_set {
public:
  /// @returns whether it is new.
  bool insert(group_ref ref);
  /// @returns whether it was there.
  bool erase(group_ref ref);
  bool contains(group_ref ref) const;
  std::size_t size() const noexcept { return size_; }
  /// All of them, by source and ordinal.
  std::vector<group_ref> list() const;

private:
  struct source {
    std::uint64_t below = 0; ///< all ordinals below it are in the set
    std::set<std::uint64_t> beyond;
  };
  std::map<std::uint32_t, source> sources_;
  std::size_t size_ = 0;
};

} // namespace millrace
