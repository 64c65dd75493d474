// SPDX-License-Identifier: Apache-2.0
#include "runtime/digest.hpp"

#include <algorithm>
#include <cstring>

#include <xxhash.h>

namespace millrace {

namespace {

XXH3_state_t *state_of(void *p) { return static_cast<XXH3_state_t *>(p); }

constexpr std::string_view digits = "0123456789abcdef";

} // namespace

std::string digest128::hex() const {
  std::string text;
  text.reserve(32);
  for (auto byte : bytes) {
    text.push_back(digits[byte >> 4]);
    text.push_back(digits[byte & 15]);
  }
  return text;
}

result<digest128> digest128::from_hex(std::string_view text) {
  digest128 out;
  if (text.size() != 2 * out.bytes.size())
    return fail(errc::bad_format, "a digest has 32 hex digits, not {}", text.size());
  for (std::size_t i = 0; i < out.bytes.size(); ++i) {
    const auto high = digits.find(text[2 * i]);
    const auto low = digits.find(text[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos)
      return fail(errc::bad_format, "not a hex digit at {} of '{}'", 2 * i, text);
    out.bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return out;
}

void digest_writer::state_deleter::operator()(void *state) const noexcept {
  XXH3_freeState(state_of(state));
}

digest_writer::digest_writer() : state_(XXH3_createState()) {
  MILLRACE_ASSERT(state_ != nullptr, "no memory for a hash state");
  XXH3_128bits_reset(state_of(state_.get()));
}

void digest_writer::add(std::span<const std::byte> bytes) {
  if (!bytes.empty())
    XXH3_128bits_update(state_of(state_.get()), bytes.data(), bytes.size());
}

void digest_writer::add_u32(std::uint32_t value) { add(std::as_bytes(std::span(&value, 1))); }

void digest_writer::add_u64(std::uint64_t value) { add(std::as_bytes(std::span(&value, 1))); }

void digest_writer::add_string(std::string_view text) {
  add_u32(static_cast<std::uint32_t>(text.size()));
  add(std::as_bytes(std::span(text)));
}

void digest_writer::add_digest(const digest128 &value) {
  add(std::as_bytes(std::span(value.bytes)));
}

digest128 digest_writer::finish() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_of(state_.get())));
  digest128 out;
  std::copy_n(canonical.digest, out.bytes.size(), out.bytes.begin());
  return out;
}

} // namespace millrace
