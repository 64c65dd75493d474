// SPDX-License-Identifier: Apache-2.0
#include "actors/loss/loss.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "actors/loss/token_loss.hpp"

namespace millrace {

namespace {

/// The tokens of one sequence: [begin, end).
struct token_range {
  std::size_t begin;
  std::size_t end;
};

status check_constants(const loss_config &config) {
  const std::pair<std::string_view, double> constants[] = {
      {"dppo_mask_low", config.dppo_mask_low},
      {"dppo_mask_high", config.dppo_mask_high},
      {"ipo_threshold", config.ipo_threshold},
      {"adv_tau", config.adv_tau},
      {"kl_tau", config.kl_tau}};
  for (const auto &[name, value] : constants)
    if (!std::isfinite(value) || value < 0)
      return fail(errc::bad_value, "{} is {}; it must be a number of at least 0", name, value);
  return {};
}

std::uint64_t divisor(std::uint64_t scale) { return std::max<std::uint64_t>(scale, 1); }

/// One pass over a micro batch; adds to the gradient sequence by sequence.
template <class T> class loss_pass {
public:
  loss_pass(const loss_columns &columns, std::span<const T> trainer_logprobs,
            const loss_config &config, const loss_scales &scales, std::span<T> gradient)
      : in_(columns), trainer_(trainer_logprobs), config_(config), scales_(scales),
        gradient_(gradient) {}

  /// Errors: bad_value for a ref_kl token without a reference.
  result<component_tallies> run(token_range range) {
    component_tallies out{.rl = rl(range), .ce = ce(range), .ref_kl = {}};
    auto tally = ref_kl(range);
    if (!tally)
      return tl::unexpected(std::move(tally).error());
    out.ref_kl = *tally;
    return out;
  }

private:
  /// Nothing only if there is a stream and it has no token here.
  std::optional<loss_tally> rl(token_range range) {
    loss_tally out;
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const float weight = in_.rl_weights ? (*in_.rl_weights)[i] : 1.0F;
      if (in_.loss_mask[i] == 0 || weight == 0)
        continue;
      const auto token = rl_loss(trainer_[i], static_cast<T>(in_.inference_logprobs[i]),
                                 static_cast<T>(in_.advantages[i]), config_);
      add(i, weight, scales_.rl, token, out);
      out.hit_high += token.hit && in_.advantages[i] > 0 ? 1U : 0U;
      out.hit_low += token.hit && in_.advantages[i] < 0 ? 1U : 0U;
    }
    return in_.rl_weights ? if_any(out) : out;
  }

  std::optional<loss_tally> ce(token_range range) {
    loss_tally out;
    for (std::size_t i = range.begin; in_.ce_weights && i < range.end; ++i) {
      const float weight = (*in_.ce_weights)[i];
      if (weight == 0)
        continue;
      add(i, weight, scales_.ce, ce_loss(trainer_[i]), out);
      out.shortfall -= static_cast<double>(trainer_[i]);
    }
    return if_any(out);
  }

  result<std::optional<loss_tally>> ref_kl(token_range range) {
    loss_tally out;
    for (std::size_t i = range.begin; in_.ref_kl_weights && i < range.end; ++i) {
      const float weight = (*in_.ref_kl_weights)[i];
      if (weight == 0)
        continue;
      if (!in_.ref_logprobs)
        return fail(errc::bad_value,
                    "token {} (token {} of its sequence) has the ref_kl weight {}, and there are "
                    "no reference logprobs",
                    i, i - range.begin, weight);
      const auto reference = static_cast<T>((*in_.ref_logprobs)[i]);
      add(i, weight, scales_.ref_kl,
          ref_kl_loss(trainer_[i], static_cast<T>(in_.inference_logprobs[i]), reference), out);
      out.shortfall += static_cast<double>(reference - trainer_[i]);
    }
    return if_any(out);
  }

  void add(std::size_t i, float weight, std::uint64_t scale, const token_loss<T> &token,
           loss_tally &out) {
    const auto factor = static_cast<T>(weight);
    gradient_[i] += factor * token.gradient / static_cast<T>(divisor(scale));
    ++out.tokens;
    out.hit += token.hit ? 1U : 0U;
    (token.hit ? out.hit_kl : out.kept_kl) += static_cast<double>(token.mismatch_kl);
    out.loss += static_cast<double>(factor * token.term);
  }

  static std::optional<loss_tally> if_any(const loss_tally &tally) {
    return tally.tokens > 0 ? std::optional(tally) : std::nullopt;
  }

  const loss_columns &in_;
  std::span<const T> trainer_;
  const loss_config &config_;
  const loss_scales &scales_;
  std::span<T> gradient_;
};

/// A component's share of the loss. Errors: bad_value if it has tokens and no scale.
result<double> scaled(std::string_view name, const std::optional<loss_tally> &tally,
                      std::uint64_t scale) {
  if (tally && tally->tokens > 0 && scale == 0)
    return fail(errc::bad_value,
                "{} has {} tokens in this micro batch and a scale of 0; its scale is the count of "
                "its tokens over all micro batches of all ranks",
                name, tally->tokens);
  return tally ? tally->loss / static_cast<double>(divisor(scale)) : 0;
}

result<double> sum_of(const component_tallies &total, const loss_scales &scales) {
  const auto rl = scaled("rl", total.rl, scales.rl);
  const auto ce = scaled("ce", total.ce, scales.ce);
  const auto ref_kl = scaled("ref_kl", total.ref_kl, scales.ref_kl);
  for (const auto *part : {&rl, &ce, &ref_kl})
    if (!*part)
      return tl::unexpected(part->error());
  return *rl + *ce + *ref_kl;
}

/// Counts a value under its name if it is not finite.
void note(std::vector<non_finite> &out, std::string_view name, double value, std::size_t place) {
  if (std::isfinite(value))
    return;
  const auto found =
      std::find_if(out.begin(), out.end(), [name](const auto &one) { return one.name == name; });
  if (found == out.end())
    out.push_back({name, 1, place});
  else
    ++found->count;
}

template <class T> std::vector<non_finite> find_non_finites(const loss_result<T> &in, rl_kind rl) {
  std::vector<non_finite> out;
  note(out, "loss", static_cast<double>(in.loss), 0);
  for (std::size_t i = 0; i < in.grad_trainer_logprobs.size(); ++i)
    note(out, "grad_trainer_logprobs", static_cast<double>(in.grad_trainer_logprobs[i]), i);
  for (std::size_t i = 0; i < in.sequences.size(); ++i)
    for (const auto &metric : metrics_of(in.sequences[i], rl))
      note(out, metric.name, metric.value, i);
  return out;
}

} // namespace

template <class T>
result<loss_result<T>> compute_loss(const loss_columns &columns,
                                    std::span<const T> trainer_logprobs, const loss_config &config,
                                    const loss_scales &scales) {
  MILLRACE_TRY(check_constants(config));
  MILLRACE_TRY(columns.check(trainer_logprobs.size()));
  loss_result<T> out;
  out.grad_trainer_logprobs.resize(trainer_logprobs.size());
  loss_pass<T> pass(columns, trainer_logprobs, config, scales, out.grad_trainer_logprobs);
  out.sequences.reserve(columns.sequence_lengths.size());
  std::size_t begin = 0;
  for (const auto length : columns.sequence_lengths) {
    const auto end = begin + static_cast<std::size_t>(length);
    auto tallies = pass.run({begin, end});
    if (!tallies)
      return with_context(std::move(tallies).error(),
                          fmt::format("sequence {}", out.sequences.size()));
    out.total += *tallies;
    out.sequences.push_back(*tallies);
    begin = end;
  }
  const auto loss = sum_of(out.total, scales);
  if (!loss)
    return tl::unexpected(loss.error());
  out.loss = static_cast<T>(*loss);
  out.non_finites = find_non_finites(out, config.rl);
  return out;
}

template result<loss_result<float>> compute_loss(const loss_columns &, std::span<const float>,
                                                 const loss_config &, const loss_scales &);
template result<loss_result<double>> compute_loss(const loss_columns &, std::span<const double>,
                                                  const loss_config &, const loss_scales &);

} // namespace millrace
