// SPDX-License-Identifier: Apache-2.0
#include "actors/reader/group_table.hpp"

namespace millrace {

group_table::group &group_table::of(const group_key &key) {
  auto [at, is_new] = groups_.try_emplace(key);
  if (is_new) {
    const auto size = sizes_.by_env.find(key.env);
    at->second.ref = {by_ordinal_.size(), 0};
    by_ordinal_.push_back(&at->second); // a map's elements stay where they are
    at->second.info = std::make_shared<group_info>(
        group_info{key, source_, size == sizes_.by_env.end() ? sizes_.other : size->second});
  }
  return at->second;
}

std::vector<group_table::group *> group_table::not_begun() {
  std::vector<group *> out;
  for (auto *one : by_ordinal_)
    if (!one->begun)
      out.push_back(one);
  return out;
}

std::vector<group_table::group *> group_table::open() {
  std::vector<group *> out;
  for (auto *one : by_ordinal_)
    if (one->begun && !one->settled && !one->released)
      out.push_back(one);
  return out;
}

group_table::group *group_table::find(std::uint64_t ordinal) {
  return ordinal < by_ordinal_.size() ? by_ordinal_[ordinal] : nullptr;
}

std::uint32_t group_table::member_of(group &where, std::string_view episode) {
  if (const auto found = where.members.find(episode); found != where.members.end())
    return found->second;
  const auto next = static_cast<std::uint32_t>(where.members.size());
  where.members.emplace(episode, next);
  return next;
}

status group_table::learn_size(group &where, std::uint32_t size) {
  if (size == 0 || size == where.info->size)
    return {};
  if (where.info->size != 0)
    return fail(errc::conflict, "group {} has size {}, here it says {}", where.info->key.text(),
                where.info->size, size);
  auto info = *where.info;
  info.size = size;
  where.info = std::make_shared<group_info>(std::move(info));
  return {};
}

} // namespace millrace
