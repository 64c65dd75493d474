// SPDX-License-Identifier: Apache-2.0
#include "actors/loss/loss_tally.hpp"

namespace millrace {

namespace {

double mean(double sum, std::uint64_t count) {
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

double share(std::uint64_t part, std::uint64_t count) {
  return mean(static_cast<double>(part), count);
}

void add(std::optional<loss_tally> &to, const std::optional<loss_tally> &other) noexcept {
  if (!other)
    return;
  if (!to)
    to.emplace();
  *to += *other;
}

} // namespace

loss_tally &loss_tally::operator+=(const loss_tally &other) noexcept {
  tokens += other.tokens;
  hit += other.hit;
  hit_high += other.hit_high;
  hit_low += other.hit_low;
  hit_kl += other.hit_kl;
  kept_kl += other.kept_kl;
  shortfall += other.shortfall;
  loss += other.loss;
  return *this;
}

component_tallies &component_tallies::operator+=(const component_tallies &other) noexcept {
  add(rl, other.rl);
  add(ce, other.ce);
  add(ref_kl, other.ref_kl);
  return *this;
}

std::vector<loss_metric> metrics_of(const component_tallies &tallies, rl_kind rl) {
  std::vector<loss_metric> out;
  if (const auto &in = tallies.rl) {
    out.push_back({"masked_mismatch_kl", mean(in->hit_kl, in->hit)});
    out.push_back({"unmasked_mismatch_kl", mean(in->kept_kl, in->tokens - in->hit)});
    out.push_back({"is_masked", share(in->hit, in->tokens)});
    if (rl == rl_kind::standard) {
      out.push_back({"is_masked_high", share(in->hit_high, in->tokens)});
      out.push_back({"is_masked_low", share(in->hit_low, in->tokens)});
      out.push_back({"masked_advantage_positive", share(in->hit_high, in->hit)});
      out.push_back({"masked_advantage_negative", share(in->hit_low, in->hit)});
    }
  }
  if (const auto &in = tallies.ce)
    out.push_back({"nll", mean(in->shortfall, in->tokens)});
  if (const auto &in = tallies.ref_kl) {
    out.push_back({"ref_kl/masked_mismatch_kl", mean(in->hit_kl, in->hit)});
    out.push_back({"ref_kl/unmasked_mismatch_kl", mean(in->kept_kl, in->tokens - in->hit)});
    out.push_back({"ref_kl/is_masked", share(in->hit, in->tokens)});
    out.push_back({"ref_kl", mean(in->shortfall, in->tokens)});
  }
  return out;
}

} // namespace millrace
