// SPDX-License-Identifier: Apache-2.0
#include "actors/reader/bigram_env.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "actors/trainer/bigram.hpp"
#include "runtime/log.hpp"

namespace millrace {

namespace {

constexpr std::uint64_t secret_label = 0; ///< groups have those from 1 on

/// In [0, 1), 53 bits.
double uniform(random_source &random) {
  return static_cast<double>(random.next() >> 11) * 0x1.0p-53;
}

std::vector<std::uint32_t> permutation(std::uint32_t size, random_source random) {
  std::vector<std::uint32_t> out(size);
  std::iota(out.begin(), out.end(), 0U);
  for (std::uint32_t i = size; i > 1; --i)
    std::swap(out[i - 1], out[random.below(i)]);
  return out;
}

node_data node_of(std::string role, std::vector<std::int32_t> tokens) {
  node_data out;
  out.role = std::move(role);
  out.token_ids = std::move(tokens);
  out.mask.assign(out.token_ids.size(), 0);
  return out;
}

} // namespace

void live_tally::add(const message &frame) {
  const std::lock_guard lock(mutex_);
  const auto added = tally_.add(record_kind::frame, frame);
  MILLRACE_ASSERT(added, "an episode of its own making: {}", added.error().message);
}

recording_counts live_tally::counts() const {
  const std::lock_guard lock(mutex_);
  return tally_.counts();
}

bigram_env::bigram_env(const bigram_env_options &options, std::shared_ptr<const bigram_board> board,
                       std::shared_ptr<live_tally> tally, std::shared_ptr<memory_meter> meter)
    : options_(options), name_(fmt::format("bigram env, seed {}", options.seed)),
      board_(std::move(board)), tally_(std::move(tally)), meter_(std::move(meter)),
      secret_(permutation(options.vocab_size, random_source(options.seed).derive(secret_label))) {}

result<std::unique_ptr<bigram_env>> bigram_env::make(const bigram_env_options &options,
                                                     std::shared_ptr<const bigram_board> board,
                                                     std::shared_ptr<live_tally> tally,
                                                     std::shared_ptr<memory_meter> meter) {
  std::unique_ptr<bigram_env> out(
      new bigram_env(options, std::move(board), std::move(tally), std::move(meter)));
  if (!options.record.empty()) {
    auto writer = recording_writer::create(options.record, out->name_);
    if (!writer)
      return tl::unexpected(std::move(writer).error());
    out->writer_.emplace(std::move(*writer));
  }
  return out;
}

/// An episode whole, in one frame. The same seed, group, member and parameters give the same one.
std::optional<record> bigram_env::next() {
  if (member_ == 0)
    policy_ = board_->newest();
  auto random = random_source(options_.seed).derive(group_ + 1).derive(member_);
  record out{record_kind::frame, 0, {}};
  auto encoded = encode(play(random));
  MILLRACE_ASSERT(encoded, "an episode of its own making: {}", encoded.error().message);
  for (const auto &part : *encoded)
    out.parts.push_back(frame::copy_of(part.bytes(), meter_)); // counted as held, as what arrives
  tally_->add(out.parts);
  if (writer_)
    if (const auto written = writer_->append(out.kind, out.parts); !written) {
      log::error("source.record: {}; nothing more is recorded", written.error().message);
      writer_.reset();
    }
  if (++member_ == options_.group_size) {
    member_ = 0;
    ++group_;
  }
  return out;
}

frame_data bigram_env::play(random_source &random) const {
  // All episodes of a group begin alike: the group's own source of chance says how.
  const auto first = random_source(options_.seed).derive(group_ + 1).below(options_.vocab_size);
  auto prompt = node_of("user", {static_cast<std::int32_t>(first)});
  auto turn = node_of("assistant", {});
  turn.index = 1;
  turn.parent = 0;
  turn.sampled = true;
  std::uint32_t right = 0;
  auto before = first;
  for (std::uint32_t i = 0; i < turn_tokens; ++i) {
    float logprob = 0;
    const auto token = draw(before, random, logprob);
    turn.token_ids.push_back(static_cast<std::int32_t>(token));
    turn.logprobs.push_back(logprob);
    right += token == secret_[before] ? 1U : 0U;
    before = token;
  }
  turn.mask.assign(turn_tokens, 1);
  frame_data out;
  out.key = {options_.run, std::string(label), fmt::format("token-{}", first),
             fmt::format("g{}", group_)};
  out.episode = fmt::format("g{}-e{}", group_, member_);
  out.group_size = options_.group_size;
  out.first_version = out.last_version = policy_.version;
  out.nodes = {std::move(prompt), std::move(turn)};
  out.finish.emplace();
  out.finish->traces.push_back(
      {.id = out.episode,
       .agent = "policy",
       .reward = static_cast<double>(right) / static_cast<double>(turn_tokens)});
  count_whole_episode(out);
  return out;
}

/// A token that follows `before`, as the policy would say it.
std::uint32_t bigram_env::draw(std::uint32_t before, random_source &random, float &logprob) const {
  const auto row =
      row_of(policy_.logits->data() + std::size_t{before} * options_.vocab_size,
             options_.vocab_size, static_cast<double>(static_cast<float>(options_.temperature)));
  double left = uniform(random);
  std::uint32_t token = 0;
  while (token + 1 < options_.vocab_size && (left -= std::exp(logprob_of(row, token))) >= 0)
    ++token;
  logprob = static_cast<float>(logprob_of(row, token));
  return token;
}

status bigram_env::close() {
  if (!writer_)
    return {};
  auto writer = *std::exchange(writer_, std::nullopt);
  return writer.finish();
}

} // namespace millrace
