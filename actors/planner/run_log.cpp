// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/run_log.hpp"

#include <random>

#include "actors/planner/config_change.hpp"
#include "runtime/crash_point.hpp"
#include "runtime/log.hpp"

namespace millrace {

namespace {

digest128 random_folder() {
  std::random_device source;
  digest128 out;
  for (auto &byte : out.bytes)
    byte = static_cast<std::uint8_t>(source());
  return out;
}

/// A run goes on only as what it was begun as.
status check_same(const log_open &last, const run_identity &who, const std::string &file) {
  if (last.run != who.run)
    return fail(errc::bad_argument,
                "{} is of run '{}', this is run '{}' (run.id): name another state folder", file,
                last.run, who.run);
  if (last.source != who.source)
    return fail(errc::bad_argument,
                "{} is of a run that reads {}, the config says {}: name another state folder", file,
                last.source, who.source);
  if (last.ranks != who.ranks)
    return fail(errc::bad_argument,
                "{} is of a run with {} ranks, the config says trainer.ranks = {}: name another "
                "state folder",
                file, last.ranks, who.ranks);
  return {};
}

/// The new config wins, and what has changed is named; but for what the log depends on.
status check_settings(const run_history &log, const run_identity &who,
                      const std::filesystem::path &state) {
  const auto &last = *log.opened();
  if (last.config_digest == who.config_digest)
    return {};
  const auto before = read_config_file(state);
  if (!before)
    return tl::unexpected(before.error());
  const auto changes = config_changes(*before, who.settings);
  const bool is_empty = log.committed() == 0 && log.groups().size() == 0;
  const bool may_make_again = log.committed() > log.durable();
  for (const auto &[key, was, is] : changes)
    if (!before->empty() && !is_empty &&
        (is_bound_to_log(key) || (may_make_again && decides_what_is_rejected(key))))
      return fail(errc::bad_argument,
                  "{} is of a run with {} = {}, the config says {}: what the log says rests on it; "
                  "set it back, or name another state folder",
                  (state / "planner.log").string(), key, was, is);
  log::warn("{}: the config is not the one of the last start (start {}){}{}: from here on this one "
            "counts",
            (state / "planner.log").string(), last.epoch, ": ",
            before->empty() ? "what has changed is not known (config.toml is gone)"
                            : text_of(changes));
  return {};
}

} // namespace

result<std::unique_ptr<run_log>> run_log::open(const std::filesystem::path &state,
                                               const run_identity &who, step_keep keep, bool sync) {
  const auto path = state / "planner.log";
  run_history history(keep);
  auto file = planner_log::open(
      path, {.sync = sync}, [&](std::uint64_t offset, const log_record &record) -> status {
        if (auto applied = history.apply(record); !applied)
          return with_context(std::move(applied).error(),
                              fmt::format("{}: record at offset {}", path.string(), offset));
        return {};
      });
  if (!file)
    return tl::unexpected(std::move(file).error());
  const auto last = history.opened();
  if (last) {
    MILLRACE_TRY(check_same(*last, who, path.string()));
    MILLRACE_TRY(check_settings(history, who, state));
  }
  std::unique_ptr<run_log> out(new run_log(std::move(*file), std::move(history)));
  out->resumed_ = last.has_value();
  log_open start;
  start.run = who.run;
  start.folder = last ? last->folder : random_folder();
  start.epoch = last ? last->epoch + 1 : 1;
  start.program = who.program;
  start.config_digest = who.config_digest;
  start.source = who.source;
  start.ranks = who.ranks;
  MILLRACE_TRY(out->write(start));
  crash_point("planner.open.written");
  MILLRACE_TRY(out->sync());
  crash_point("planner.open.synced");
  MILLRACE_TRY(write_config_file(state, who.settings, sync ? file_sync::on : file_sync::off));
  out->history_.take_final(); // readers hear of it when they come
  return out;
}

status run_log::write(const log_record &record) {
  MILLRACE_TRY(file_.append(record));
  synced_ = false;
  const auto applied = history_.apply(record);
  MILLRACE_ASSERT(applied, "a record of the planner's own: {}", applied.error().message);
  return {};
}

status run_log::sync() {
  if (synced_)
    return {};
  MILLRACE_TRY(file_.sync());
  synced_ = true;
  return {};
}

} // namespace millrace
