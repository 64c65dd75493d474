// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "actors/loss/loss_config.hpp"
#include "runtime/result.hpp"

namespace millrace {

enum class trainer_kind : std::uint8_t {
  policy,  ///< trainer.policy, in the process of the rank
  external ///< processes in Python that attach to it
};

/// Config keys: trainer.*, loss.*.
struct trainer_config {
  /// Key: trainer.kind. Default: policy.
  trainer_kind kind = trainer_kind::policy;

  /// Key: trainer.peers. Range: 1 to 1,024. Default: 1. Processes in Python that share the data of
  /// one rank (context, tensor and pipeline parallel): each gets all of it, and a step is trained
  /// when all have said so.
  std::uint32_t peers = 1;

  /// Key: trainer.timeout. Unit: s. Range: 1 to 86,400. Default: 300. How long ranks wait for each
  /// other in a collective before they give up. Less: a rank that hangs is noticed sooner; one that
  /// only stalls ends the run.
  double timeout_s = 300;

  /// Key: trainer.policy. What is trained, if kind is policy: "replay" (nothing: the data path
  /// alone), "bigram" (a table of vocab_size x vocab_size), or the path of a shared library
  /// (policy_abi.h), with a slash in it. Default: "replay".
  std::string policy = "replay";

  /// Key: trainer.policy_options. For a policy in a library, which reads them as it likes. Default:
  /// none.
  std::string policy_options;

  /// Key: trainer.learning_rate. Of policy bigram (SGD). Range: 0 to 1e6. Default: 1. Larger: it
  /// learns in fewer steps, until it overshoots.
  double learning_rate = 1.0;

  /// Keys: loss.*.
  loss_config loss;

  /// Key: trainer.metrics. File to which rank 0 adds a line of JSON for each step. Default: none,
  /// then metrics.jsonl in the state folder; without a state folder nothing is written.
  std::filesystem::path metrics;

  /// Key: trainer.checkpoint_every. Unit: steps. Range: 0 (never) to 1e9. Default: 0. More often: a
  /// job that restarts has less to do again, and saving takes more of its time.
  std::uint64_t checkpoint_every = 0;

  /// What checkpoints say that they are of.
  std::string checkpoint_name() const {
    return kind == trainer_kind::external ? "external" : policy;
  }

  /// All rules that are broken, each with its key's name.
  /// @param vocab_size of the run.
  std::vector<error> validate(std::uint32_t vocab_size) const;
};

} // namespace millrace
