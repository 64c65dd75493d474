// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/json.hpp"

namespace millrace {

/// Compares what came out with what a case expects, and keeps the first difference. Source:
/// docs/algorithms.md, "Comparing".
class comparison {
public:
  bool equal() const noexcept { return difference_.empty(); }
  /// "expected.traces[0].samples[1].mask[3]: 1, expected 0".
  const std::string &difference() const noexcept { return difference_; }

  /// The field of `object`, to be compared by the caller; nothing if it lacks it, which is a
  /// difference.
  std::optional<json::value> field(const json::value &object, std::string_view key);
  /// The elements of a list that should have `count`; nothing otherwise.
  std::optional<std::vector<json::value>> items(const json::value &list, std::size_t count);
  /// True if `want` is not null and should not be; a difference unless `have` says the same.
  bool present(const json::value &want, bool have);

  void boolean(const json::value &want, bool got);
  void integers(const json::value &want, std::span<const std::uint32_t> got);
  void integers(const json::value &want, std::span<const std::int64_t> got);
  void booleans(const json::value &want, std::span<const std::uint8_t> got);
  void text(const json::value &want, std::string_view got);
  /// @param scale nothing: exact; otherwise within relative * max(abs(want), scale).
  void number(const json::value &want, double got, std::optional<double> scale = std::nullopt,
              double relative = 1e-6);
  void numbers(const json::value &want, std::span<const float> got,
               std::optional<double> scale = std::nullopt);

  void differs(const json::value &want, std::string text);

private:
  template <class T> void integers_of(const json::value &want, std::span<const T> got);

  std::string difference_;
};

} // namespace millrace
