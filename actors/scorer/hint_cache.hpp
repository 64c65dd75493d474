// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace millrace {

/// The token ids of texts that a server tokenized, the longest unused ones dropped first. Thread:
/// one at a time.
class hint_cache {
public:
  /// @param most_bytes of texts and ids together; a text that alone is over it is not kept.
  explicit hint_cache(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  std::optional<std::vector<std::int32_t>> find(std::string_view text);
  void add(std::string text, std::vector<std::int32_t> tokens);

  std::size_t bytes() const noexcept { return bytes_; }

private:
  struct entry {
    std::string text;
    std::vector<std::int32_t> tokens;
    std::size_t bytes() const noexcept {
      return text.size() + tokens.size() * sizeof(std::int32_t) + overhead;
    }
  };
  static constexpr std::size_t overhead = 128; ///< of the containers, about

  const std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  std::list<entry> entries_; ///< last used first
  std::unordered_map<std::string_view, std::list<entry>::iterator> by_text_;
};

} // namespace millrace
