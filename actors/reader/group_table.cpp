// SPDX-License-Identifier: Apache-2.0
#include "actors/reader/group_table.hpp"

namespace millrace {

group_table::group &group_table::of(const group_key &key) {
  auto [at, is_new] = groups_.try_emplace(key);
  if (is_new) {
    const auto size = sizes_.by_env.find(key.env);
    at->second.ref = {next_++, 0};
    at->second.info = std::make_shared<group_info>(
        group_info{key, source_, size == sizes_.by_env.end() ? sizes_.other : size->second});
  }
  return at->second;
}

std::vector<group_table::group *> group_table::not_begun() {
  std::vector<group *> out;
  for (auto &[key, one] : groups_)
    if (!one.begun)
      out.push_back(&one);
  return out;
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
