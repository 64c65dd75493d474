// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/token_exporter.hpp"

#include <array>
#include <system_error>
#include <utility>

#include "actors/loss/token_export.hpp"
#include "actors/trainer/loss_view.hpp"

namespace millrace {

std::filesystem::path token_exporter::step_folder() const {
  return folder_ / fmt::format("step-{:06}", step_);
}

status token_exporter::begin(std::uint64_t step) {
  step_ = step;
  written_ = 0;
  file_.reset();
  std::error_code failed;
  std::filesystem::create_directories(step_folder(), failed);
  if (!failed) // the step is made again: until all ranks have written, nothing in it is stable
    std::filesystem::remove(step_folder() / "STABLE", failed);
  if (failed)
    return fail(errc::io, "{}: cannot make this folder: {}", step_folder().string(),
                failed.message());
  auto file = output_file::create(step_folder() / fmt::format("rank-{}.jsonl", rank_));
  if (!file)
    return tl::unexpected(std::move(file).error());
  file_.emplace(std::move(*file));
  return {};
}

status token_exporter::add(const micro_batch_tensors &tensors, const loss_config &config,
                           std::span<const float> trainer_logprobs,
                           std::span<const float> entropy) {
  MILLRACE_ASSERT(file_, "tokens of step {} came before it began", tensors.step);
  const export_columns columns{.loss = loss_view(tensors),
                               .trainer_logprobs = trainer_logprobs,
                               .entropy = entropy,
                               .input_ids = tensors.input_ids.values(),
                               .position_ids = tensors.position_ids.values(),
                               .env_names = tensors.env_names,
                               .padding = tensors.padding};
  const auto records =
      token_records(columns, config, {tensors.step, tensors.rank, tensors.index, written_});
  if (!records)
    return tl::unexpected(records.error());
  written_ += records->size();
  for (const auto &record : *records) {
    const auto line = json_line(record);
    MILLRACE_TRY(file_->write(std::as_bytes(std::span(line))));
  }
  return {};
}

status token_exporter::finish(collective &ranks) {
  MILLRACE_TRY(file_->finish());
  file_.reset();
  std::array<std::int64_t, 1> flushed{1};
  MILLRACE_TRY(ranks.all_reduce({"token export", step_}, std::span(flushed), reduction::sum));
  if (ranks.rank() != 0)
    return {};
  auto mark = output_file::create(step_folder() / "STABLE");
  if (!mark)
    return tl::unexpected(std::move(mark).error());
  return mark->finish();
}

} // namespace millrace
