// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "actors/link_config.hpp"
#include "actors/planner/plan_config.hpp"
#include "actors/planner/planner_config.hpp"
#include "actors/progress_config.hpp"
#include "actors/reader/source_config.hpp"
#include "actors/recovery_config.hpp"
#include "actors/scorer/env_config.hpp"
#include "actors/trainer/trainer_config.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// How many actors of each stage a run has. Config keys: env_reader.instances and so on.
/// Range of each: 1 to 1,024. More use more cores; results do not depend on them if deterministic.
struct stage_counts {
  std::uint32_t env_readers = 1; ///< share one recording: reader i takes every n-th group
  std::uint32_t assemblers = 1;
  std::uint32_t scorers = 1;
  std::uint32_t packers = 1;
};

/// Everything that a run is told. Filled and checked by config/, used by actors/run.
struct run_config {
  /// Key: run.id. Printed, and written into what the run leaves. Default: the config file's name
  /// without its ending. 1 to 128 bytes.
  std::string id;

  /// Key: state. Folder for what the run keeps: the planner's log, checkpoints, the recording of a
  /// preset, the quarantine file. Default: none, then a temporary folder is made, and removed at
  /// the end unless something was refused. A folder that is given is created if it is not there,
  /// and a run that is in it goes on where it stood.
  std::filesystem::path state;

  source_config source;
  stage_counts instances;
  batch_config batch;
  planner_config planner;
  plan_config plan;
  link_config link;
  progress_config progress;
  trainer_config trainer;
  recovery_config recovery;

  /// Key: env_default.*. For environments that `envs` does not name, and what those that it names
  /// start from.
  env_config env_default;
  /// Keys: env.NAME.*.
  std::map<std::string, env_config, std::less<>> envs;

  /// How to treat the environment of this name.
  const env_config &env(std::string_view name) const;

  /// Key: deterministic. The planner takes groups in the order of the source, so that the same
  /// recording and config give byte-identical micro batches. Default: false. True costs waiting
  /// where groups complete out of order.
  bool deterministic = false;

  /// Key: vocab_size. Token ids are below it; an episode with another id is rejected. Range: 1 to
  /// 2,147,483,647. Default: 2,147,483,647 (only ids that do not fit are rejected). Set it to the
  /// model's: one id too large ends a trainer.
  std::uint32_t vocab_size = 2'147'483'647;

  /// Key: runtime.workers. Threads that run actors. Range: 0 (as many as there are cores) to 1,024.
  /// Default: 0.
  std::uint32_t workers = 0;

  /// Key: memory.limit. Unit: bytes, also written "4GiB". Bytes of episodes that a process holds
  /// before those that feed it pause. Range: 0 (a quarter of the machine's memory:
  /// effective_memory_limit) or 1 MiB to 1 EiB. Default: 0. Too little for one step stalls readers;
  /// more only lets them run further ahead.
  std::uint64_t memory_limit = 0;

  /// steps.keep, decided.
  step_keep keep() const noexcept;

  /// Rules between the fields, of all parts: all that are broken, each with its keys' full names.
  std::vector<error> validate() const;
};

} // namespace millrace
