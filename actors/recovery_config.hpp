// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

/// How long a step can be served again.
enum class step_keep : std::uint8_t {
  automatic, ///< durable if the trainer checkpoints, else trained
  durable,   ///< until a checkpoint holds it: a trainer job that restarts gets the steps after it
  trained    ///< until it is trained: a job that restarts loses the steps after its checkpoint
};

/// What survives what. Config keys: steps.keep, log.sync, assembler.journal, recovery.wait.
struct recovery_config {
  /// Default: automatic.
  step_keep keep = step_keep::automatic;

  /// fsync of the planner's log, of journals and of checkpoints. Default: true. False: a machine
  /// that loses power may lose steps that were said to be committed; only to measure what it costs.
  bool sync = true;

  /// Assemblers write what they get to a journal in the state folder, for sources that cannot be
  /// read again. Default: false. True: every byte is written to disk once.
  bool journal = false;

  /// Unit: s. Range: 0 to 86,400. Default: 0. How long a run waits for a lost planner, env reader
  /// or trainer to be started again before it ends everywhere. For who restarts what dies.
  double wait_s = 0;
};

} // namespace millrace
