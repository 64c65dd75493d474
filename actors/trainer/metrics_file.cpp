// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/metrics_file.hpp"

#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "runtime/append_file.hpp"
#include "runtime/json_out.hpp"

namespace millrace {

namespace {

json::tree number(double value) { return std::isfinite(value) ? json::tree(value) : json::tree(); }

json::tree mean(double sum, std::uint64_t count) {
  return count == 0 ? json::tree() : number(sum / static_cast<double>(count));
}

/// A component's share of the step's loss; nothing if it did not run.
std::optional<double> share(const std::optional<loss_tally> &tally, std::int64_t total) {
  if (!tally)
    return std::nullopt;
  return total == 0 ? 0 : tally->loss / static_cast<double>(total);
}

json::tree number(const std::optional<double> &value) {
  return value ? number(*value) : json::tree();
}

json::tree json_of(const env_metrics &in, const component_totals &totals, rl_kind rl) {
  json::tree out;
  out["sequences"] = in.sequences;
  out["tokens"] = in.tokens;
  out["reward"] = mean(in.reward, in.sequences);
  const auto rl_share = share(in.losses.rl, totals.rl);
  const auto ce_share = share(in.losses.ce, totals.ce);
  const auto ref_kl_share = share(in.losses.ref_kl, totals.ref_kl);
  std::optional<double> loss;
  for (const auto *part : {&rl_share, &ce_share, &ref_kl_share})
    if (*part)
      loss = loss.value_or(0) + **part;
  out["loss"] = number(loss);
  out["loss_rl"] = number(rl_share);
  out["loss_ce"] = number(ce_share);
  out["loss_ref_kl"] = number(ref_kl_share);
  out["masked_tokens"] = in.stats.tokens;
  out["entropy"] = mean(in.stats.entropy, in.stats.tokens);
  out["mismatch_kl"] = mean(in.stats.mismatch_kl, in.stats.tokens);
  out["importance_ratio"] = mean(in.stats.ratio, in.stats.tokens);
  out["importance_ratio_min"] = number(in.stats.ratio_min);
  out["importance_ratio_max"] = number(in.stats.ratio_max);
  for (const auto &metric : metrics_of(in.losses, rl))
    out[std::string(metric.name)] = number(metric.value);
  return out;
}

json::tree json_of(std::span<const staleness_count> counts) {
  auto rows = json::tree::array();
  std::uint64_t episodes = 0;
  double sum = 0;
  std::uint64_t oldest = 0;
  for (const auto &row : counts) {
    rows.push_back({row.staleness, row.episodes});
    episodes += row.episodes;
    sum += static_cast<double>(row.staleness) * static_cast<double>(row.episodes);
    oldest = row.staleness;
  }
  json::tree out;
  out["mean"] = mean(sum, episodes);
  out["max"] = counts.empty() ? json::tree() : json::tree(oldest);
  out["episodes"] = std::move(rows);
  return out;
}

json::tree json_of(const step_seconds &in) {
  json::tree out;
  out["upload"] = in.upload;
  out["widen"] = in.widen;
  out["forward"] = in.forward;
  out["loss"] = in.loss;
  out["backward"] = in.backward;
  out["update"] = in.update;
  return out;
}

json::tree json_of(const std::vector<non_finite_report> &in) {
  auto out = json::tree::array();
  for (const auto &one : in)
    out.push_back({{"name", one.name},
                   {"rank", one.rank},
                   {"micro_batch", one.micro_batch},
                   {"count", one.count},
                   {"first", one.first}});
  return out;
}

} // namespace

std::string metrics_line(const metrics_place &place, const step_metrics &metrics) {
  json::tree out;
  out["schema_version"] = 1;
  out["run_id"] = place.run;
  out["generation"] = place.generation;
  out["step"] = place.step;
  out["ranks"] = place.ranks;
  out["micro_batches"] = metrics.micro_batches;
  out["dummies"] = metrics.dummies;
  out["tokens_rl"] = place.totals.rl;
  out["tokens_ce"] = place.totals.ce;
  out["tokens_ref_kl"] = place.totals.ref_kl;
  out["tokens_with_padding"] = metrics.tokens;
  out["padding_share"] = mean(static_cast<double>(metrics.padding), metrics.tokens);
  out["all"] = json_of(metrics.total(), place.totals, place.rl);
  auto &envs = out["env"] = json::tree::object();
  for (const auto &[name, env] : metrics.envs)
    envs[name] = json_of(env, place.totals, place.rl);
  out["staleness"] = json_of(place.staleness);
  out["seconds"] = json_of(metrics.seconds);
  out["wire_bytes"] = metrics.wire_bytes;
  out["tensor_bytes"] = metrics.tensor_bytes;
  out["upload_bytes"] = metrics.upload_bytes;
  out["held_bytes"] = metrics.held_bytes;
  out["non_finite"] = json_of(metrics.non_finites);
  return json::dump(out) + '\n';
}

status append_line(const std::filesystem::path &path, std::string_view line) {
  auto file = append_file::open(path, {.sync = false});
  if (!file)
    return tl::unexpected(std::move(file).error());
  // A process that died while it wrote left part of a line: it stays one, and this begins anew.
  const auto before = file->map();
  if (!before)
    return tl::unexpected(before.error());
  const auto bytes = before->bytes();
  const std::string_view end = bytes.empty() || bytes.back() == std::byte{'\n'} ? "" : "\n";
  return file->append(std::array{std::as_bytes(std::span(end)), std::as_bytes(std::span(line))});
}

} // namespace millrace
