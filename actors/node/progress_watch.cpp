// SPDX-License-Identifier: Apache-2.0
#include "actors/node/progress_watch.hpp"

#include "actors/node/status_text.hpp"
#include "runtime/text_table.hpp"

namespace millrace {
namespace {

std::chrono::steady_clock::duration limit_of(const progress_config &config) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(config.limit_s));
}

} // namespace

progress_watch::progress_watch(const progress_config &config, time_point now)
    : config_(config), moved_(now), next_(now + limit_of(config)) {}

std::optional<progress_watch::alarm> progress_watch::look(time_point now, std::uint64_t steps) {
  if (steps != steps_) {
    steps_ = steps;
    moved_ = now;
    next_ = now + limit_of(config_);
  }
  if (config_.limit_s <= 0 || now < next_)
    return std::nullopt;
  next_ = now + limit_of(config_);
  return alarm{steps_, std::chrono::duration_cast<std::chrono::milliseconds>(now - moved_),
               config_.stop};
}

std::string no_progress_line(const progress_watch::alarm &alarm, const status_answer &answer) {
  const std::string what = alarm.steps == 0
                               ? "no step was trained"
                               : fmt::format("no step was trained after step {}", alarm.steps);
  return fmt::format("{} for {}: {}{}", what,
                     duration_text(static_cast<std::uint64_t>(alarm.still.count())),
                     why_line(answer), alarm.stop ? "; the run is stopped (progress.stop)" : "");
}

} // namespace millrace
