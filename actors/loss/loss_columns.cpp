// SPDX-License-Identifier: Apache-2.0
#include "actors/loss/loss_columns.hpp"

namespace millrace {

namespace {

status check_lengths(std::span<const std::int64_t> lengths, std::size_t tokens) {
  std::size_t left = tokens;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0 || static_cast<std::size_t>(lengths[i]) > left)
      return fail(errc::bad_value, "sequence {} has {} tokens, where {} of {} are left", i,
                  lengths[i], left, tokens);
    left -= static_cast<std::size_t>(lengths[i]);
  }
  if (left != 0)
    return fail(errc::bad_value, "the sequence lengths leave {} of {} tokens over", left, tokens);
  return {};
}

} // namespace

status check_column(std::string_view name, std::size_t values, std::size_t tokens) {
  if (values != tokens)
    return fail(errc::bad_value, "{} has {} values for {} tokens", name, values, tokens);
  return {};
}

status loss_columns::check(std::size_t tokens) const {
  MILLRACE_TRY(check_column("loss_mask", loss_mask.size(), tokens));
  MILLRACE_TRY(check_column("advantages", advantages.size(), tokens));
  MILLRACE_TRY(check_column("inference_logprobs", inference_logprobs.size(), tokens));
  const auto check_present = [tokens](std::string_view name, const auto &column) {
    return column ? check_column(name, column->size(), tokens) : status{};
  };
  MILLRACE_TRY(check_present("ref_logprobs", ref_logprobs));
  MILLRACE_TRY(check_present("rl_weights", rl_weights));
  MILLRACE_TRY(check_present("ce_weights", ce_weights));
  MILLRACE_TRY(check_present("ref_kl_weights", ref_kl_weights));
  return check_lengths(sequence_lengths, tokens);
}

} // namespace millrace
