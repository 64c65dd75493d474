// SPDX-License-Identifier: Apache-2.0
#include "actors/loss/token_export.hpp"

#include <algorithm>

#include "actors/loss/token_loss.hpp"
#include "runtime/json_out.hpp"

namespace millrace {

namespace {

/// The tokens of a record in the flat columns.
struct record_range {
  std::size_t begin;
  std::size_t count;
};

template <class T> std::vector<T> cut(std::span<const T> column, record_range range) {
  const auto part = column.subspan(range.begin, range.count);
  return {part.begin(), part.end()};
}

export_column<float> cut(const std::optional<std::span<const float>> &column, record_range range) {
  return column ? export_column<float>(cut(*column, range)) : std::nullopt;
}

bool any_nonzero(std::span<const float> values) {
  return std::any_of(values.begin(), values.end(), [](float value) { return value != 0; });
}

/// Whether something in the micro batch is trained by a ratio.
bool has_ratios(const loss_columns &in) {
  return !in.rl_weights || any_nonzero(*in.rl_weights) ||
         (in.ref_kl_weights && any_nonzero(*in.ref_kl_weights));
}

void add_ratios(const export_columns &in, record_range range, token_record &out) {
  for (auto *column :
       {&out.mismatch_kl, &out.log_importance_ratio, &out.importance_ratio, &out.prob_delta})
    column->emplace().reserve(range.count);
  for (std::size_t i = range.begin; i < range.begin + range.count; ++i) {
    const auto ratio = ratio_of(in.trainer_logprobs[i], in.loss.inference_logprobs[i]);
    out.mismatch_kl->push_back(ratio.mismatch_kl);
    out.log_importance_ratio->push_back(ratio.log_ratio);
    out.importance_ratio->push_back(ratio.ratio);
    out.prob_delta->push_back(ratio.prob_delta);
  }
}

/// After add_ratios.
void add_hits(const export_columns &in, const loss_config &config, record_range range,
              token_record &out) {
  for (auto *column : {&out.is_masked, &out.is_masked_high, &out.is_masked_low})
    column->emplace().reserve(range.count);
  for (std::size_t i = 0; i < range.count; ++i) {
    const float advantage = out.advantages[i];
    const bool hit = in.loss.loss_mask[range.begin + i] != 0 &&
                     is_hit_default((*out.prob_delta)[i], advantage, config);
    out.is_masked->push_back(hit ? 1 : 0);
    out.is_masked_high->push_back(hit && advantage > 0 ? 1 : 0);
    out.is_masked_low->push_back(hit && advantage < 0 ? 1 : 0);
  }
}

void copy_columns(const export_columns &in, record_range range, token_record &out) {
  out.token_ids = cut(in.input_ids, range);
  out.position_ids = cut(in.position_ids, range);
  out.loss_mask = cut(in.loss.loss_mask, range);
  out.advantages = cut(in.loss.advantages, range);
  out.inference_logprobs = cut(in.loss.inference_logprobs, range);
  out.trainer_logprobs = cut(in.trainer_logprobs, range);
  out.entropy = cut(in.entropy, range);
  out.rl_weights = cut(in.loss.rl_weights, range);
  out.ce_weights = cut(in.loss.ce_weights, range);
  out.ref_kl_weights = cut(in.loss.ref_kl_weights, range);
}

status check(const export_columns &in) {
  const auto tokens = in.trainer_logprobs.size();
  MILLRACE_TRY(in.loss.check(tokens));
  MILLRACE_TRY(check_column("entropy", in.entropy.size(), tokens));
  MILLRACE_TRY(check_column("input_ids", in.input_ids.size(), tokens));
  MILLRACE_TRY(check_column("position_ids", in.position_ids.size(), tokens));
  const auto &lengths = in.loss.sequence_lengths;
  if (in.env_names.size() != lengths.size())
    return fail(errc::bad_value, "env_names has {} names for {} sequences", in.env_names.size(),
                lengths.size());
  const auto last = lengths.empty() ? 0 : lengths.back();
  if (in.padding < 0 || in.padding > last)
    return fail(errc::bad_value, "padding is {}, and the last sequence has {} tokens", in.padding,
                last);
  return {};
}

template <class T> json::tree numbers(const std::vector<T> &values) { return values; }

json::tree booleans(const std::vector<std::uint8_t> &values) {
  auto out = json::tree::array();
  for (const auto value : values)
    out.push_back(value != 0);
  return out;
}

json::tree nulls(const token_record &record) {
  return json::tree::array_t(record.token_ids.size());
}

json::tree numbers_or_nulls(const token_record &record, const export_column<float> &column) {
  return column ? numbers(*column) : nulls(record);
}

json::tree booleans_or_nulls(const token_record &record,
                             const export_column<std::uint8_t> &column) {
  return column ? booleans(*column) : nulls(record);
}

} // namespace

result<std::vector<token_record>>
token_records(const export_columns &columns, const loss_config &config, const export_place &place) {
  MILLRACE_TRY(check(columns));
  const auto &lengths = columns.loss.sequence_lengths;
  const bool ratios = has_ratios(columns.loss);
  std::vector<token_record> out;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto padding = i + 1 == lengths.size() ? columns.padding : 0;
    const record_range range{begin, static_cast<std::size_t>(lengths[i] - padding)};
    begin += static_cast<std::size_t>(lengths[i]);
    const auto mask = columns.loss.loss_mask.subspan(range.begin, range.count);
    if (std::all_of(mask.begin(), mask.end(), [](auto value) { return value == 0; }))
      continue;
    auto &record = out.emplace_back();
    record.step = place.step;
    record.rank = place.rank;
    record.micro_step = place.micro_step;
    record.micro_sequence_idx = i;
    record.export_sequence_idx = place.written + out.size() - 1;
    record.env_name = columns.env_names[i];
    copy_columns(columns, range, record);
    if (ratios)
      add_ratios(columns, range, record);
    if (ratios && config.rl == rl_kind::standard)
      add_hits(columns, config, range, record);
  }
  return out;
}

std::string json_line(const token_record &record) {
  json::tree out;
  out["schema_version"] = 1;
  out["step"] = record.step;
  out["rank"] = record.rank;
  out["micro_step"] = record.micro_step;
  out["micro_sequence_idx"] = record.micro_sequence_idx;
  out["export_sequence_idx"] = record.export_sequence_idx;
  out["env_name"] = record.env_name;
  out["token_ids"] = numbers(record.token_ids);
  out["position_ids"] = numbers(record.position_ids);
  out["loss_mask"] = booleans(record.loss_mask);
  out["advantages"] = numbers(record.advantages);
  out["inference_logprobs"] = numbers(record.inference_logprobs);
  out["trainer_logprobs"] = numbers(record.trainer_logprobs);
  out["entropy"] = numbers(record.entropy);
  out["mismatch_kl"] = numbers_or_nulls(record, record.mismatch_kl);
  out["log_importance_ratio"] = numbers_or_nulls(record, record.log_importance_ratio);
  out["importance_ratio"] = numbers_or_nulls(record, record.importance_ratio);
  out["prob_delta"] = numbers_or_nulls(record, record.prob_delta);
  out["is_masked"] = booleans_or_nulls(record, record.is_masked);
  out["is_masked_high"] = booleans_or_nulls(record, record.is_masked_high);
  out["is_masked_low"] = booleans_or_nulls(record, record.is_masked_low);
  out["rl_weights"] = numbers_or_nulls(record, record.rl_weights);
  out["ce_weights"] = numbers_or_nulls(record, record.ce_weights);
  out["ref_kl_weights"] = numbers_or_nulls(record, record.ref_kl_weights);
  return json::dump(out) + '\n';
}

} // namespace millrace
