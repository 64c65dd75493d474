// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/reader/record_source.hpp"
#include "actors/reader/source_config.hpp"
#include "actors/trainer/bigram_policy.hpp"
#include "runtime/frame.hpp"
#include "runtime/random.hpp"
#include "schema/episode_encoder.hpp"
#include "schema/recording_writer.hpp"

namespace millrace {

struct bigram_env_options {
  std::string run{}; ///< run.id, for the groups' keys
  std::uint64_t seed = 1;
  std::uint32_t vocab_size = 0;
  std::uint32_t group_size = 0;
  double temperature = 1;
  /// Recording of all its episodes, there once it is closed; empty: none.
  std::filesystem::path record{};
};

/// What a live environment has made, for who checks a run against it. Thread: any.
class live_tally {
public:
  void add(const message &frame);
  recording_counts counts() const;

private:
  mutable std::mutex mutex_;
  recording_tally tally_;
};

/// A live environment in the process of the trainer. A task is a token to begin with; the policy
/// samples the tokens after it, and its reward is the share of them that follow the one before as a
/// secret permutation has it. A policy that knows nothing gets 1 / vocab_size on average, one that
/// has learned all of it 1. Group by group it samples from the newest parameters on the board, and
/// says their version.
class bigram_env final : public record_source {
public:
  static constexpr std::string_view label = bigram_env_name;
  static constexpr std::uint32_t turn_tokens = 16; ///< that an episode samples

  /// Errors: those of recording_writer::create.
  static result<std::unique_ptr<bigram_env>> make(const bigram_env_options &options,
                                                  std::shared_ptr<const bigram_board> board,
                                                  std::shared_ptr<live_tally> tally,
                                                  std::shared_ptr<memory_meter> meter);

  std::optional<record> next() override;
  const std::string &name() const noexcept override { return name_; }
  const std::string &source() const noexcept override { return name_; }
  bool begins_group() const noexcept override { return member_ == 0; }
  status close() override;

  /// The token that is to follow each one.
  const std::vector<std::uint32_t> &secret() const noexcept { return secret_; }

private:
  bigram_env(const bigram_env_options &options, std::shared_ptr<const bigram_board> board,
             std::shared_ptr<live_tally> tally, std::shared_ptr<memory_meter> meter);

  frame_data play(random_source &random) const;
  std::uint32_t draw(std::uint32_t before, random_source &random, float &logprob) const;

  const bigram_env_options options_;
  const std::string name_;
  const std::shared_ptr<const bigram_board> board_;
  const std::shared_ptr<live_tally> tally_;
  const std::shared_ptr<memory_meter> meter_;
  std::optional<recording_writer> writer_;
  std::vector<std::uint32_t> secret_;
  std::uint64_t group_ = 0;
  std::uint32_t member_ = 0;
  bigram_board::edition policy_; ///< of the group under way
};

} // namespace millrace
