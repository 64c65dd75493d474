// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "runtime/random.hpp"
#include "schema/log_records.hpp"

namespace millrace::test {

inline constexpr std::size_t log_record_kinds = std::variant_size_v<log_record>;

/// Records of the planner's log with random content that a log can hold. They do not fit each
/// other.
class log_record_maker {
public:
  explicit log_record_maker(std::uint64_t seed) : random_(seed) {}

  /// Precondition: kind < log_record_kinds.
  log_record make(std::size_t kind);
  /// Of any kind.
  log_record make() { return make(random_.below(log_record_kinds)); }

  log_group group();
  log_commit commit(std::uint32_t bins, std::uint32_t groups);

private:
  std::uint64_t number() { return random_.next() >> random_.below(64); }
  std::uint64_t count() { return (number() >> 1) + 1; }
  std::uint32_t number32() { return static_cast<std::uint32_t>(number()); }
  std::string text(std::uint32_t most = 40);
  digest128 digest();
  std::vector<std::uint8_t> bytes();
  std::vector<log_group> groups(std::uint32_t size);
  frame annotations(const group_key &key);
  frame plan(std::uint64_t step, std::uint32_t rank, std::uint32_t index);

  random_source random_;
};

/// True if all fields and the bytes of all frames are equal.
bool same(const log_record &a, const log_record &b);

} // namespace millrace::test
