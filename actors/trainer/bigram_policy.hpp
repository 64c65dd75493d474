// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "actors/trainer/policy.hpp"

namespace millrace {

/// What a bigram policy has learned. Shape [vocab_size, vocab_size]: logits by the token before.
using bigram_logits = std::vector<double>;

/// Where a policy shows its newest parameters to who samples from them. Thread: any.
class bigram_board {
public:
  struct edition {
    std::uint64_t version = 0; ///< of the policy: steps that are in it
    std::shared_ptr<const bigram_logits> logits;
  };

  void publish(std::uint64_t version, bigram_logits logits);
  /// None before the first publish().
  edition newest() const;

private:
  mutable std::mutex mutex_;
  edition newest_;
};

struct bigram_options {
  std::uint32_t vocab_size = 0; ///< 2 to largest_bigram_vocab
  double learning_rate = 0;     ///< of SGD: how far a step follows the gradient
};
inline constexpr std::uint32_t largest_bigram_vocab = 4096;

/// A tabular softmax over a small vocabulary, trained by plain SGD: it truly learns, with nothing
/// in it that could hide a mistake on the way. Parameters, gradients and sums are double; ranks add
/// their gradients in rank order, so all of them get the same bits. It begins with zeros: all
/// tokens are as likely.
class bigram_policy final : public policy {
public:
  static constexpr std::string_view name = "bigram";

  /// @param board may be null.
  bigram_policy(bigram_options options, std::shared_ptr<bigram_board> board);

  /// Errors: bad_value for a token id that is not in the vocabulary.
  status forward(const policy_batch &in, std::span<float> logprobs,
                 std::span<float> entropy) override;
  status backward(const policy_batch &in, std::span<const float> gradient) override;
  status step(const policy_update &in) override;
  /// A file parameters.safetensors: "logits" [vocab_size, vocab_size] float64.
  status save(const std::filesystem::path &folder, std::uint64_t step) override;
  result<std::uint64_t> load(const std::filesystem::path &folder) override;
  void reset() override;

  const bigram_logits &logits() const noexcept { return logits_; }

private:
  void publish(std::uint64_t version) const;

  const bigram_options options_;
  const std::shared_ptr<bigram_board> board_;
  bigram_logits logits_;
  std::vector<double> gradient_; ///< as logits_, of this rank's micro batches of the step
};

} // namespace millrace
