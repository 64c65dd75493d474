// SPDX-License-Identifier: Apache-2.0
#include "actors/group_set.hpp"

namespace millrace {

bool group_set::insert(group_ref ref) {
  auto &[below, beyond] = sources_[ref.source];
  if (ref.ordinal < below || !beyond.insert(ref.ordinal).second)
    return false;
  while (!beyond.empty() && *beyond.begin() == below) {
    beyond.erase(beyond.begin());
    ++below;
  }
  ++size_;
  return true;
}

bool group_set::erase(group_ref ref) {
  const auto found = sources_.find(ref.source);
  if (found == sources_.end())
    return false;
  auto &[below, beyond] = found->second;
  if (ref.ordinal < below) {
    for (auto ordinal = ref.ordinal + 1; ordinal < below; ++ordinal)
      beyond.insert(ordinal);
    below = ref.ordinal;
  } else if (beyond.erase(ref.ordinal) == 0) {
    return false;
  }
  --size_;
  return true;
}

bool group_set::contains(group_ref ref) const {
  const auto found = sources_.find(ref.source);
  return found != sources_.end() &&
         (ref.ordinal < found->second.below || found->second.beyond.contains(ref.ordinal));
}

std::vector<group_ref> group_set::list() const {
  std::vector<group_ref> out;
  out.reserve(size_);
  for (const auto &[number, one] : sources_) {
    for (std::uint64_t ordinal = 0; ordinal < one.below; ++ordinal)
      out.push_back({ordinal, number});
    for (auto ordinal : one.beyond)
      out.push_back({ordinal, number});
  }
  return out;
}

} // namespace millrace
