// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/result.hpp"

namespace millrace {

/// An XXH3-128 digest in its canonical (big-endian) byte order.
struct digest128 {
  std::array<std::uint8_t, 16> bytes{};

  auto operator<=>(const digest128 &) const = default;
  /// 32 lower-case hex digits.
  std::string hex() const;
  static result<digest128> from_hex(std::string_view text);
};

/// XXH3-128 over a stream of values, integers little-endian.
class digest_writer {
public:
  digest_writer();

  void add(std::span<const std::byte> bytes);
  void add_u32(std::uint32_t value);
  void add_u64(std::uint64_t value);
  /// Its length as u32, then its bytes.
  void add_string(std::string_view text);
  /// The 16 canonical bytes.
  void add_digest(const digest128 &value);

  digest128 finish() const;

private:
  struct state_deleter {
    void operator()(void *state) const noexcept;
  };
  std::unique_ptr<void, state_deleter> state_;
};

} // namespace millrace
