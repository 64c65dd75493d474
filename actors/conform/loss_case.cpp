// SPDX-License-Identifier: Apache-2.0
#include "actors/conform/loss_case.hpp"

#include "actors/conform/case_reader.hpp"

namespace millrace {

namespace {

void get_wide(case_fields &fields, std::string_view key, std::vector<std::int64_t> &out) {
  std::vector<std::int32_t> narrow;
  fields.get(key, narrow);
  out.assign(narrow.begin(), narrow.end());
}

status read_config(const json::value &test, loss_config &out) {
  const auto config = test.get<json::value>("loss_config");
  if (!config)
    return tl::unexpected(config.error());
  std::string type;
  case_fields fields(*config);
  fields.get("type", type);
  fields.get("adv_tau", out.adv_tau);
  fields.get("kl_tau", out.kl_tau);
  if (type == "default") {
    fields.get("dppo_mask_low", out.dppo_mask_low);
    fields.get("dppo_mask_high", out.dppo_mask_high);
    return fields.done();
  }
  out.rl = rl_kind::ipo;
  fields.get("ipo_threshold", out.ipo_threshold);
  MILLRACE_TRY(fields.done());
  return type == "ipo" ? status{} : config->wrong("no such type: '{}'", type);
}

/// Both kinds of cases have these columns.
status read_columns(const json::value &batch, loss_case &out) {
  case_fields fields(batch);
  get_wide(fields, "sequence_lengths", out.sequence_lengths);
  fields.get("trainer_logprobs", out.trainer_logprobs);
  fields.get("inference_logprobs", out.inference_logprobs);
  fields.get("loss_mask", out.loss_mask);
  fields.get("advantages", out.advantages);
  fields.find("ref_logprobs", out.ref_logprobs);
  fields.find("rl_weights", out.rl_weights);
  fields.find("ce_weights", out.ce_weights);
  fields.find("ref_kl_weights", out.ref_kl_weights);
  return fields.done();
}

status read_scales(const json::value &test, loss_scales &out) {
  const auto scales = test.get<json::value>("scales");
  if (!scales)
    return tl::unexpected(scales.error());
  case_fields fields(*scales);
  fields.get("rl_scale", out.rl);
  fields.get("ce_scale", out.ce);
  fields.get("ref_kl_scale", out.ref_kl);
  return fields.done();
}

status read_export_columns(const json::value &batch, loss_case &out) {
  json::value names = batch;
  case_fields fields(batch);
  get_wide(fields, "input_ids", out.input_ids);
  get_wide(fields, "position_ids", out.position_ids);
  fields.get("entropy", out.entropy);
  fields.get("padding", out.padding);
  fields.get("env_names", names);
  MILLRACE_TRY(fields.done());
  const auto items = names.items();
  if (!items)
    return tl::unexpected(items.error());
  for (const auto &item : *items) {
    const auto name = item.as<std::string>();
    if (!name)
      return tl::unexpected(name.error());
    out.env_names.push_back(*name);
  }
  return {};
}

status read_place(const json::value &test, export_place &out) {
  std::int32_t rank = 0;
  std::int32_t micro_step = 0;
  case_fields fields(test);
  fields.get("step", out.step);
  fields.get("rank", rank);
  fields.get("micro_step", micro_step);
  out.rank = static_cast<std::uint32_t>(rank);
  out.micro_step = static_cast<std::uint32_t>(micro_step);
  return fields.done();
}

} // namespace

loss_columns loss_case::columns() const {
  return {.sequence_lengths = sequence_lengths,
          .loss_mask = loss_mask,
          .advantages = advantages,
          .inference_logprobs = inference_logprobs,
          .ref_logprobs = ref_logprobs,
          .rl_weights = rl_weights,
          .ce_weights = ce_weights,
          .ref_kl_weights = ref_kl_weights};
}

result<loss_case> read_loss_case(const json::value &test) {
  loss_case out;
  const auto batch = test.get<json::value>("batch");
  if (!batch)
    return tl::unexpected(batch.error());
  MILLRACE_TRY(read_config(test, out.config));
  MILLRACE_TRY(read_scales(test, out.scales));
  MILLRACE_TRY(read_columns(*batch, out));
  return out;
}

result<loss_case> read_export_case(const json::value &test) {
  loss_case out;
  const auto batch = test.get<json::value>("batch");
  if (!batch)
    return tl::unexpected(batch.error());
  MILLRACE_TRY(read_config(test, out.config));
  MILLRACE_TRY(read_place(test, out.place));
  MILLRACE_TRY(read_columns(*batch, out));
  MILLRACE_TRY(read_export_columns(*batch, out));
  return out;
}

} // namespace millrace
