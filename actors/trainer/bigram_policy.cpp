// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/bigram_policy.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "actors/trainer/bigram.hpp"
#include "actors/trainer/safetensors.hpp"

namespace millrace {

namespace {

std::filesystem::path file_in(const std::filesystem::path &folder) {
  return folder / "parameters.safetensors";
}

/// Calls visit(index, token before, token) for every token that has one before it in its sequence.
template <class Visit> void for_each_pair(const policy_batch &in, Visit &&visit) {
  std::size_t begin = 0;
  for (const auto length : in.sequence_lengths) {
    const auto end = begin + static_cast<std::size_t>(length);
    for (std::size_t i = begin + 1; i < end; ++i)
      visit(i, static_cast<std::size_t>(in.input_ids[i - 1]),
            static_cast<std::size_t>(in.input_ids[i]));
    begin = end;
  }
}

} // namespace

void bigram_board::publish(std::uint64_t version, bigram_logits logits) {
  auto shared = std::make_shared<const bigram_logits>(std::move(logits));
  const std::lock_guard lock(mutex_);
  newest_ = {version, std::move(shared)};
}

bigram_board::edition bigram_board::newest() const {
  const std::lock_guard lock(mutex_);
  return newest_;
}

bigram_policy::bigram_policy(bigram_options options, std::shared_ptr<bigram_board> board)
    : options_(options), board_(std::move(board)) {
  MILLRACE_ASSERT(options.vocab_size >= 2 && options.vocab_size <= largest_bigram_vocab,
                  "a vocabulary of {}", options.vocab_size);
  reset();
}

void bigram_policy::reset() {
  const std::size_t size = std::size_t{options_.vocab_size} * options_.vocab_size;
  logits_.assign(size, 0.0);
  gradient_.assign(size, 0.0);
  publish(0);
}

void bigram_policy::publish(std::uint64_t version) const {
  if (board_)
    board_->publish(version, logits_);
}

status bigram_policy::forward(const policy_batch &in, std::span<float> logprobs,
                              std::span<float> entropy) {
  const auto outside = std::ranges::find_if(in.input_ids, [this](auto id) {
    return id < 0 || std::cmp_greater_equal(id, options_.vocab_size);
  });
  if (outside != in.input_ids.end())
    return fail(errc::bad_value,
                "token {} of the micro batch has id {}; policy 'bigram' has a vocabulary of {} "
                "(vocab_size)",
                outside - in.input_ids.begin(), *outside, options_.vocab_size);
  std::ranges::fill(logprobs, 0.0F);
  std::ranges::fill(entropy, 0.0F);
  for_each_pair(in, [&](std::size_t i, std::size_t before, std::size_t token) {
    const auto row = row_of(logits_.data() + before * options_.vocab_size, options_.vocab_size,
                            static_cast<double>(in.temperatures[i]));
    logprobs[i] = static_cast<float>(logprob_of(row, token));
    entropy[i] = static_cast<float>(entropy_of(row));
  });
  return {};
}

status bigram_policy::backward(const policy_batch &in, std::span<const float> gradient) {
  for_each_pair(in, [&](std::size_t i, std::size_t before, std::size_t token) {
    if (gradient[i] == 0)
      return;
    const auto at = before * options_.vocab_size;
    const auto row =
        row_of(logits_.data() + at, options_.vocab_size, static_cast<double>(in.temperatures[i]));
    for (std::size_t k = 0; k < options_.vocab_size; ++k)
      gradient_[at + k] += static_cast<double>(gradient[i]) * slope_of(row, token, k);
  });
  return {};
}

status bigram_policy::step(const policy_update &in) {
  MILLRACE_TRY(in.ranks.all_reduce({"gradients", in.step}, std::span(gradient_), reduction::sum));
  for (std::size_t i = 0; i < logits_.size(); ++i)
    logits_[i] -= options_.learning_rate * gradient_[i];
  std::ranges::fill(gradient_, 0.0);
  publish(in.step);
  return {};
}

status bigram_policy::save(const std::filesystem::path &folder, std::uint64_t step) {
  const std::array items{tensor_item{"logits",
                                     true,
                                     dtype::float64,
                                     {options_.vocab_size, options_.vocab_size},
                                     std::as_bytes(std::span(logits_))}};
  return write_safetensors(file_in(folder),
                           {{"format", "millrace policy bigram"}, {"step", std::to_string(step)}},
                           items);
}

result<std::uint64_t> bigram_policy::load(const std::filesystem::path &folder) {
  const auto path = file_in(folder);
  const auto found = read_safetensors(path);
  if (!found)
    return tl::unexpected(found.error());
  const auto *logits = found->find("logits");
  const std::vector<std::uint64_t> shape{options_.vocab_size, options_.vocab_size};
  if (logits == nullptr || logits->type != dtype::float64)
    return fail(errc::bad_format, "{}: there is no float64 tensor 'logits'", path.string());
  if (logits->shape != shape)
    return fail(errc::bad_value, "{}: 'logits' does not have the shape [{}, {}] of vocab_size",
                path.string(), options_.vocab_size, options_.vocab_size);
  std::uint64_t step = 0;
  const auto text = found->metadata.find("step");
  if (text == found->metadata.end() ||
      std::from_chars(text->second.data(), text->second.data() + text->second.size(), step).ec !=
          std::errc())
    return fail(errc::bad_format, "{}: it does not say its step", path.string());
  std::memcpy(logits_.data(), logits->bytes.data(), logits->bytes.size());
  std::ranges::fill(gradient_, 0.0);
  publish(step);
  return step;
}

} // namespace millrace
