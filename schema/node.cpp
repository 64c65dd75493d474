// SPDX-License-Identifier: Apache-2.0
#include "schema/node.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "schema/kept_tokens.hpp"

namespace millrace {

namespace {

status check_length(std::string_view field, std::size_t got, std::size_t want,
                    std::string_view unit) {
  if (got != want)
    return fail(errc::bad_value, "{} has {} values for {} {}", field, got, want, unit);
  return {};
}

status check_finite(std::string_view field, std::span<const float> values) {
  // All exponent bits set: infinite or not a number. This loop vectorises, one that leaves at the
  // first such value does not.
  constexpr std::uint32_t exponent = 0x7F80'0000U;
  std::uint32_t bad = 0;
  for (float x : values)
    bad |= (std::bit_cast<std::uint32_t>(x) & exponent) == exponent ? 1U : 0U;
  if (bad == 0)
    return {};
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      return fail(errc::bad_value, "{}[{}] is {}", field, i, values[i]);
  return {};
}

status check_flags(std::string_view field, std::span<const std::uint8_t> values) {
  std::uint8_t seen = 0;
  for (auto x : values)
    seen |= x;
  if (seen > 1)
    return fail(errc::bad_value, "{} holds a value other than 0 and 1", field);
  return {};
}

/// Ids are below it. No limit: those that are not negative.
std::uint32_t limit_of(std::uint32_t vocab_size) noexcept {
  return vocab_size == 0 ? 0x8000'0000U : vocab_size;
}

status check_ids(std::span<const std::int32_t> ids, std::uint32_t vocab_size) {
  const auto limit = limit_of(vocab_size);
  std::uint32_t largest = 0; // negative ids become large
  for (auto id : ids)
    largest = std::max(largest, static_cast<std::uint32_t>(id));
  if (largest < limit)
    return {};
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (static_cast<std::uint32_t>(ids[i]) >= limit)
      return fail(errc::bad_value, "token_ids[{}] is {}, outside the vocabulary of {}", i, ids[i],
                  limit);
  return {};
}

} // namespace

std::size_t count_true(std::span<const std::uint8_t> mask) noexcept {
  // Eight flags are added at once, each in a byte of its own, which holds 255 of them.
  constexpr std::size_t most = 255;
  constexpr std::uint64_t low_bytes = 0x00FF'00FF'00FF'00FFU;
  std::size_t count = 0;
  std::size_t at = 0;
  for (auto words = mask.size() / 8; words > 0;) {
    const auto n = std::min(words, most);
    std::uint64_t sums = 0;
    for (std::size_t i = 0; i < n; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, mask.data() + at + 8 * i, sizeof word);
      sums += word;
    }
    const auto pairs = (sums & low_bytes) + ((sums >> 8) & low_bytes);
    count += static_cast<std::size_t>((pairs * 0x0001'0001'0001'0001U) >> 48);
    at += 8 * n;
    words -= n;
  }
  for (; at < mask.size(); ++at)
    count += mask[at];
  return count;
}

status check_node(const node_view &node, std::uint32_t vocab_size) {
  const auto n = node.token_ids.size();
  MILLRACE_TRY(check_length("mask", node.mask.size(), n, "token ids"));
  MILLRACE_TRY(check_flags("mask", node.mask));
  if (!node.is_content.empty()) {
    MILLRACE_TRY(check_length("is_content", node.is_content.size(), n, "token ids"));
    MILLRACE_TRY(check_flags("is_content", node.is_content));
  }
  if (node.echo_mask) {
    MILLRACE_TRY(check_length("echo_mask", node.echo_mask->size(), n, "token ids"));
    MILLRACE_TRY(check_flags("echo_mask", *node.echo_mask));
  }
  MILLRACE_TRY(check_ids(node.token_ids, vocab_size));

  const auto k = count_true(node.mask);
  struct stream {
    std::string_view name;
    std::optional<std::span<const float>> values;
  };
  for (const auto &[name, values] :
       {stream{"logprobs", node.logprobs}, stream{"advantages", node.advantages},
        stream{"reference_logprobs", node.reference_logprobs}})
    if (values) {
      MILLRACE_TRY(check_length(name, values->size(), k, "true mask entries"));
      MILLRACE_TRY(check_finite(name, *values));
    }
  for (const auto &[name, values] :
       {stream{"rl_weights", node.rl_weights}, stream{"ce_weights", node.ce_weights},
        stream{"ref_kl_weights", node.ref_kl_weights}})
    if (values) {
      MILLRACE_TRY(check_length(name, values->size(), n, "token ids"));
      MILLRACE_TRY(check_finite(name, *values));
    }
  if (node.mm_token_type_ids)
    MILLRACE_TRY(check_length("mm_token_type_ids", node.mm_token_type_ids->size(), n, "token ids"));
  if (node.routed_experts) {
    if (node.routed_experts->shape.size() != 3)
      return fail(errc::bad_value, "routed_experts has {} dimensions, not 3",
                  node.routed_experts->shape.size());
    MILLRACE_TRY(check_length(
        "routed_experts", static_cast<std::size_t>(node.routed_experts->rows()), n, "token ids"));
  }
  const kept_tokens_view kept{node.kept_counts, node.kept_ids};
  MILLRACE_TRY(check_kept_counts(kept, n));
  return check_kept_ids(kept, limit_of(vocab_size));
}

} // namespace millrace
