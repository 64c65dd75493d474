// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace millrace {

/// How many groups of the readers of this process are, in part or whole, in the journal of one
/// assembler and nowhere else. Thread: any.
class pinned_groups {
public:
  void add(std::string_view assembler) {
    const std::lock_guard lock(mutex_);
    ++counts_[std::string(assembler)];
  }
  /// Precondition: added before.
  void remove(std::string_view assembler) {
    const std::lock_guard lock(mutex_);
    if (const auto found = counts_.find(assembler); found != counts_.end() && --found->second == 0)
      counts_.erase(found);
  }
  std::uint64_t count(std::string_view assembler) const {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(assembler);
    return found == counts_.end() ? 0 : found->second;
  }

private:
  mutable std::mutex mutex_;
  std::map<std::string, std::uint64_t, std::less<>> counts_;
};

} // namespace millrace
