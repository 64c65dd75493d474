// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "actors/loss/loss.hpp"
#include "actors/run_counters.hpp"
#include "actors/trainer/learner.hpp"
#include "actors/trainer/policy.hpp"
#include "actors/trainer/step_metrics.hpp"
#include "actors/trainer/token_exporter.hpp"
#include "runtime/output_file.hpp"

namespace millrace {

struct policy_learner_options {
  std::string run{}; ///< run.id
  std::uint32_t rank = 0;
  loss_config loss{};
  std::filesystem::path metrics{}; ///< rank 0 adds a line of JSON for each step; empty: nobody does
  std::filesystem::path exports{}; ///< folder for annotated tokens; empty: none
  std::filesystem::path dump{};    ///< folder for tensors and parameters; empty: none
  file_sync sync = file_sync::on;
};

/// Trains a policy on the host: widens one micro batch after the other, has the policy look at it,
/// computes the losses, hands back their gradient, and takes one step of the optimizer for all.
class policy_learner final : public learner {
public:
  policy_learner(policy_learner_options options, std::unique_ptr<policy> what,
                 std::shared_ptr<run_counters> counters);

  status begin(std::uint64_t generation) override;
  status step(const learner_step &in) override;
  /// The policy's files lie in `folder`; what is returned says which, with their digests.
  result<std::vector<std::byte>> save(const std::filesystem::path &folder) override;
  status load(std::span<const std::byte> saved, const std::filesystem::path &folder,
              std::uint64_t step) override;
  void reset() override;

private:
  status train(const learner_step &in, const micro_batch &batch, step_metrics &metrics);
  status look_at(const learner_step &in, step_metrics &metrics);
  void note(const loss_result<float> &loss, step_metrics &metrics) const;
  status report(const learner_step &in, const step_metrics &mine);
  status dump_parameters(std::uint64_t step);

  const policy_learner_options options_;
  const std::unique_ptr<policy> policy_;
  const std::shared_ptr<run_counters> counters_;
  token_exporter exporter_;
  std::uint64_t generation_ = 0;
  std::uint64_t applied_ = 0;
  micro_batch_tensors tensors_;
  std::vector<float> logprobs_;
  std::vector<float> entropy_;
};

} // namespace millrace
