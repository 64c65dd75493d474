// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>

#include "actors/conform/cases.hpp"
#include "actors/conform/comparison.hpp"
#include "actors/conform/loss_case.hpp"

namespace millrace {

namespace {

/// Errors are measured against 1 where the expected value is smaller.
constexpr double least_scale = 1;

/// Metrics by name, each with a value for each sequence on which its component ran.
using metric_columns = std::map<std::string_view, std::vector<double>>;

metric_columns columns_of(std::span<const component_tallies> sequences, rl_kind rl) {
  metric_columns out;
  for (const auto &sequence : sequences)
    for (const auto &metric : metrics_of(sequence, rl))
      out[metric.name].push_back(metric.value);
  return out;
}

template <class T>
void compare_values(comparison &to, const json::value &want, std::span<const T> got,
                    double relative) {
  const auto list = to.items(want, got.size());
  for (std::size_t i = 0; list && i < got.size(); ++i)
    to.number((*list)[i], static_cast<double>(got[i]), least_scale, relative);
}

void compare_metrics(comparison &to, const json::value &want, const metric_columns &got) {
  constexpr double relative = 1e-6; // ratios of counts are float32 in both runs
  const auto members = want.members();
  if (!members || members->size() != got.size())
    return to.differs(want, fmt::format("{} metrics, expected others", got.size()));
  for (const auto &[name, values] : *members)
    if (const auto found = got.find(name); found == got.end())
      to.differs(values, "there is no such metric");
    else
      compare_values<double>(to, values, found->second, relative);
}

template <class T>
void compare_loss(comparison &to, const json::value &want, const loss_result<T> &got, rl_kind rl,
                  double relative) {
  if (const auto loss = to.field(want, "loss"))
    to.number(*loss, static_cast<double>(got.loss), least_scale, relative);
  if (const auto metrics = to.field(want, "metrics"))
    compare_metrics(to, *metrics, columns_of(got.sequences, rl));
  if (const auto gradient = to.field(want, "grad_trainer_logprobs"))
    compare_values<T>(to, *gradient, got.grad_trainer_logprobs, relative);
}

template <class T> result<loss_result<T>> compute(const loss_case &in) {
  const std::vector<T> trainer_logprobs(in.trainer_logprobs.begin(), in.trainer_logprobs.end());
  return compute_loss<T>(in.columns(), trainer_logprobs, in.config, in.scales);
}

case_outcome outcome_of(const comparison &to) {
  return to.equal() ? case_outcome::pass() : case_outcome::fail(to.difference());
}

case_outcome run_losses(const json::value &test) {
  const auto input = read_loss_case(test);
  if (!input)
    return case_outcome::fail(input.error().message);
  const auto narrow = compute<float>(*input);
  const auto wide = compute<double>(*input);
  if (const auto error = test.field("expected_error"); error && *error)
    return narrow || wide ? case_outcome::fail("accepted, expected a rejection")
                          : case_outcome::pass();
  if (!narrow || !wide)
    return case_outcome::fail(narrow ? wide.error().message : narrow.error().message);
  comparison to;
  const auto expected = to.field(test, "expected");
  if (const auto want = expected ? to.field(*expected, "float32") : std::nullopt)
    compare_loss(to, *want, *narrow, input->config.rl, 1e-6);
  if (const auto want = expected ? to.field(*expected, "float64") : std::nullopt)
    compare_loss(to, *want, *wide, input->config.rl, 1e-10);
  return outcome_of(to);
}

/// Values of a written record against expected ones, null, boolean, number or text.
/// @param scale as comparison::number
void compare_value(comparison &to, const json::value &want, const json::value &got,
                   std::optional<double> scale) {
  if (want.type() != got.type())
    return to.differs(want, "a value of another type");
  if (const auto text = got.as<std::string_view>())
    to.text(want, *text);
  else if (const auto truth = got.as<bool>())
    to.boolean(want, *truth);
  else if (const auto number = got.as<double>())
    to.number(want, *number, scale);
}

void compare_column(comparison &to, std::string_view name, const json::value &want,
                    const json::value &got) {
  constexpr std::array<std::string_view, 4> computed{"mismatch_kl", "log_importance_ratio",
                                                     "importance_ratio", "prob_delta"};
  const bool rounded = std::find(computed.begin(), computed.end(), name) != computed.end();
  const auto scale = rounded ? std::optional(least_scale) : std::nullopt;
  const auto values = got.items();
  if (!values)
    return compare_value(to, want, got, scale);
  const auto list = to.items(want, values->size());
  for (std::size_t i = 0; list && i < list->size(); ++i)
    compare_value(to, (*list)[i], (*values)[i], scale);
}

/// @param line the record as it is written, which is what people read
void compare_record(comparison &to, const json::value &want, std::string_view line) {
  json::document reader;
  const auto got = reader.parse(line);
  const auto written = got ? got->members() : tl::unexpected(got.error());
  const auto members = want.members();
  if (!written || !members || written->size() != members->size())
    return to.differs(want, "a record with other fields");
  for (const auto &[name, value] : *written)
    if (const auto field = to.field(want, name))
      compare_column(to, name, *field, value);
}

case_outcome run_export(const json::value &test) {
  const auto input = read_export_case(test);
  if (!input)
    return case_outcome::fail(input.error().message);
  const std::vector<float> trainer_logprobs(input->trainer_logprobs.begin(),
                                            input->trainer_logprobs.end());
  const auto records = token_records({.loss = input->columns(),
                                      .trainer_logprobs = trainer_logprobs,
                                      .entropy = input->entropy,
                                      .input_ids = input->input_ids,
                                      .position_ids = input->position_ids,
                                      .env_names = input->env_names,
                                      .padding = input->padding},
                                     input->config, input->place);
  if (!records)
    return case_outcome::fail(records.error().message);
  comparison to;
  const auto expected = to.field(test, "expected_records");
  const auto list = expected ? to.items(*expected, records->size()) : std::nullopt;
  for (std::size_t i = 0; list && i < list->size(); ++i)
    compare_record(to, (*list)[i], json_line((*records)[i]));
  return outcome_of(to);
}

} // namespace

case_outcome run_loss_case(const json::value &test) {
  const auto kind = test.find<std::string_view>("kind", json::nulls::as_absent);
  if (!kind)
    return case_outcome::fail(kind.error().message);
  return *kind == "token_export" ? run_export(test) : run_losses(test);
}

} // namespace millrace
