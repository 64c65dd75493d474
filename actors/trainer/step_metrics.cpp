// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/step_metrics.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <string_view>

namespace millrace {

namespace {

/// Most that one rank says of a step. More environments than that have no place in one step.
constexpr std::uint64_t longest_text = std::uint64_t{64} << 20;

/// Writes 8-byte words, little-endian, and names.
class word_writer {
public:
  void add(std::uint64_t word) {
    const auto bytes = std::as_bytes(std::span(&word, 1));
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }
  void add(std::uint32_t value) { add(std::uint64_t{value}); }
  void add(std::string_view text) {
    add(std::uint64_t{text.size()});
    const auto bytes = std::as_bytes(std::span(text));
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  std::vector<std::byte> take() { return std::move(out_); }

private:
  std::vector<std::byte> out_;
};

/// Reads them again; after the end everything is 0 and ok() is false.
class word_reader {
public:
  explicit word_reader(std::span<const std::byte> in) : in_(in) {}

  void get(std::uint64_t &word) {
    if (const auto bytes = take(sizeof word); !bytes.empty())
      std::memcpy(&word, bytes.data(), sizeof word);
  }
  void get(double &value) {
    std::uint64_t word = 0;
    get(word);
    value = std::bit_cast<double>(word);
  }
  void get(std::uint32_t &value) {
    std::uint64_t word = 0;
    get(word);
    ok_ = ok_ && word <= UINT32_MAX;
    value = static_cast<std::uint32_t>(word);
  }
  void get(std::string &text) {
    std::uint64_t size = 0;
    get(size);
    const auto bytes = take(size);
    text.assign(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  }
  /// Of things that take at least 8 bytes each.
  std::uint64_t count() {
    std::uint64_t n = 0;
    get(n);
    ok_ = ok_ && n <= in_.size() / 8;
    return ok_ ? n : 0;
  }
  bool done() const noexcept { return ok_ && in_.empty(); }

private:
  std::span<const std::byte> take(std::uint64_t size) {
    ok_ = ok_ && size <= in_.size();
    if (!ok_)
      return {};
    const auto out = in_.first(size);
    in_ = in_.subspan(size);
    return out;
  }

  std::span<const std::byte> in_;
  bool ok_ = true;
};

// One list of fields for writing and reading.

template <class Tally, class Visit> void each_field(Tally &t, Visit &&visit) {
  visit(t.tokens), visit(t.hit), visit(t.hit_high), visit(t.hit_low);
  visit(t.hit_kl), visit(t.kept_kl), visit(t.shortfall), visit(t.loss);
}

template <class Stats, class Visit> void each_stat(Stats &s, Visit &&visit) {
  visit(s.tokens), visit(s.entropy), visit(s.mismatch_kl);
  visit(s.ratio), visit(s.ratio_min), visit(s.ratio_max);
}

template <class Metrics, class Visit> void each_number(Metrics &m, Visit &&visit) {
  visit(m.micro_batches), visit(m.dummies), visit(m.tokens), visit(m.padding);
  visit(m.wire_bytes), visit(m.tensor_bytes), visit(m.upload_bytes), visit(m.held_bytes);
  visit(m.seconds.upload), visit(m.seconds.widen), visit(m.seconds.forward);
  visit(m.seconds.loss), visit(m.seconds.backward), visit(m.seconds.update);
}

std::vector<std::byte> encode(const step_metrics &in) {
  word_writer out;
  const auto add = [&out](const auto &field) { out.add(field); };
  each_number(in, add);
  out.add(std::uint64_t{in.envs.size()});
  for (const auto &[name, env] : in.envs) {
    out.add(std::string_view(name));
    add(env.sequences), add(env.tokens), add(env.reward);
    for (const auto *tally : {&env.losses.rl, &env.losses.ce, &env.losses.ref_kl}) {
      out.add(std::uint64_t{tally->has_value()});
      if (*tally)
        each_field(**tally, add);
    }
    each_stat(env.stats, add);
  }
  out.add(std::uint64_t{in.non_finites.size()});
  for (const auto &one : in.non_finites) {
    out.add(std::string_view(one.name));
    add(one.rank), add(one.micro_batch), add(one.count), add(one.first);
  }
  return out.take();
}

result<step_metrics> decode(std::span<const std::byte> bytes) {
  word_reader in(bytes);
  const auto get = [&in](auto &field) { in.get(field); };
  step_metrics out;
  each_number(out, get);
  for (auto n = in.count(); n > 0; --n) {
    std::string name;
    in.get(name);
    auto &env = out.envs[std::move(name)];
    get(env.sequences), get(env.tokens), get(env.reward);
    for (auto *tally : {&env.losses.rl, &env.losses.ce, &env.losses.ref_kl}) {
      std::uint64_t present = 0;
      in.get(present);
      if (present != 0)
        each_field(tally->emplace(), get);
    }
    each_stat(env.stats, get);
  }
  for (auto n = in.count(); n > 0; --n) {
    auto &one = out.non_finites.emplace_back();
    in.get(one.name);
    get(one.rank), get(one.micro_batch), get(one.count), get(one.first);
  }
  if (!in.done())
    return fail(errc::bad_format, "another rank's metrics cannot be read");
  return out;
}

} // namespace

env_metrics &env_metrics::operator+=(const env_metrics &other) noexcept {
  sequences += other.sequences;
  tokens += other.tokens;
  reward += other.reward;
  losses += other.losses;
  stats += other.stats;
  return *this;
}

env_metrics step_metrics::total() const {
  env_metrics out;
  for (const auto &[name, env] : envs)
    out += env;
  return out;
}

step_metrics &step_metrics::operator+=(const step_metrics &other) {
  for (const auto &[name, env] : other.envs)
    envs[name] += env;
  micro_batches += other.micro_batches;
  dummies += other.dummies;
  tokens += other.tokens;
  padding += other.padding;
  wire_bytes += other.wire_bytes;
  tensor_bytes += other.tensor_bytes;
  upload_bytes += other.upload_bytes;
  held_bytes = std::max(held_bytes, other.held_bytes);
  for (const auto part : {&step_seconds::upload, &step_seconds::widen, &step_seconds::forward,
                          &step_seconds::loss, &step_seconds::backward, &step_seconds::update})
    seconds.*part = std::max(seconds.*part, other.seconds.*part);
  non_finites.insert(non_finites.end(), other.non_finites.begin(), other.non_finites.end());
  return *this;
}

/// First how much each rank has to say, then that, padded to the longest.
result<step_metrics> reduce(collective &ranks, std::uint64_t step, const step_metrics &mine) {
  auto bytes = encode(mine);
  const std::uint64_t size = bytes.size();
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(ranks.size()));
  MILLRACE_TRY(ranks.all_gather({"sizes of metrics", step}, std::as_bytes(std::span(&size, 1)),
                                std::as_writable_bytes(std::span(sizes))));
  const auto longest = *std::ranges::max_element(sizes);
  if (longest > longest_text)
    return fail(errc::too_large, "a rank's metrics of step {} have {} bytes, at most {} are taken",
                step, longest, longest_text);
  bytes.resize(longest);
  std::vector<std::byte> all(longest * sizes.size());
  MILLRACE_TRY(ranks.all_gather({"metrics", step}, bytes, all));
  step_metrics out;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    auto one = decode(std::span(all).subspan(rank * longest, sizes[rank]));
    if (!one)
      return with_context(std::move(one).error(), fmt::format("step {}, rank {}", step, rank));
    out += *one;
  }
  return out;
}

} // namespace millrace
