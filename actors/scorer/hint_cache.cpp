// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/hint_cache.hpp"

#include <utility>

namespace millrace {

std::optional<std::vector<std::int32_t>> hint_cache::find(std::string_view text) {
  const auto found = by_text_.find(text);
  if (found == by_text_.end())
    return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->tokens;
}

void hint_cache::add(std::string text, std::vector<std::int32_t> tokens) {
  entry added{std::move(text), std::move(tokens)};
  if (added.bytes() > most_bytes_ || by_text_.contains(added.text))
    return;
  bytes_ += added.bytes();
  entries_.push_front(std::move(added));
  by_text_.emplace(entries_.front().text, entries_.begin());
  while (bytes_ > most_bytes_) {
    bytes_ -= entries_.back().bytes();
    by_text_.erase(entries_.back().text);
    entries_.pop_back();
  }
}

} // namespace millrace
