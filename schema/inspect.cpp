// SPDX-License-Identifier: Apache-2.0
#include "schema/inspect.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace millrace {

namespace {

constexpr std::size_t listed = 20; ///< messages and places that a summary names

/// Reads records into a summary.
class inspection {
public:
  explicit inspection(recording_summary &out) : out_(out) {}

  void add(const record &one) {
    ++out_.records[static_cast<std::size_t>(one.kind)];
    const auto added = add_body(one);
    if (!added)
      damage(one.offset, added.error().message);
  }

  void finish(const recording_reader &reader) {
    out_.counts = tally_.counts();
    for (const auto &group : out_.counts.groups) {
      auto &env = out_.environments[group.key.env];
      ++env.groups;
      env.complete += group.size != 0 && group.size == group.episodes() ? 1U : 0U;
      env.ok += group.ok;
      env.errored += group.errored;
      env.cancelled += group.cancelled;
      env.rejected += group.rejected;
      env.nodes += group.nodes;
      env.tokens += group.tokens;
    }
    for (const auto &[key, rewards] : rewards_) {
      auto &env = out_.environments[key.env];
      env.uniform += rewards.count > 1 && rewards.low == rewards.high ? 1U : 0U;
    }
    if (reader.index())
      compare(counts_of(*reader.index().value().operator->()), reader.bytes());
  }

private:
  status add_body(const record &one) {
    switch (one.kind) {
    case record_kind::frame: {
      auto frame = episode_frame::parse(one.parts);
      if (!frame)
        return tl::unexpected(std::move(frame).error());
      if (tally_.add(*frame))
        add_frame(*frame);
      return {};
    }
    case record_kind::sealed_episode: {
      auto episode = sealed_episode::parse(one.parts);
      if (!episode)
        return tl::unexpected(std::move(episode).error());
      if (tally_.add(*episode))
        for (const auto &frame : episode->frames())
          add_frame(frame);
      return {};
    }
    default:
      return tally_.add(one.kind, one.parts);
    }
  }

  void add_frame(const episode_frame &frame) {
    const auto &table = frame.table();
    auto &env = out_.environments[std::string(text_of(table.key()->env()))];
    for (std::uint32_t i = 0; i < frame.node_count(); ++i) {
      const auto node = frame.node(i);
      env.trainable += count_true(node.mask);
      env.expert_tokens += node.routed_experts ? node.token_ids.size() : 0;
      for (const auto &tensor : node.tensors)
        env.images += tensor.name == "image_grid_thw" ? tensor.rows() : 0;
    }
    if (table.finish() != nullptr)
      add_finish(env, table, *table.finish());
    if (const auto good = check_elements(frame, {}); !good) {
      ++out_.refused_count;
      if (out_.refused.size() < listed)
        out_.refused.push_back(good.error().message);
    }
  }

  void add_finish(environment_summary &env, const wire::EpisodeFrame &table,
                  const wire::EpisodeEnd &finish) {
    env.eval += table.eval() ? 1U : 0U;
    if (finish.traces() == nullptr)
      return;
    env.traces += finish.traces()->size();
    if (finish.status() != wire::EpisodeStatus::Ok)
      return;
    auto &group = rewards_[key_of(*table.key())];
    for (const auto *trace : *finish.traces()) {
      if (!trace->ok() || !trace->agent_trainable())
        continue;
      env.rewards.add(trace->reward());
      group.add(trace->reward());
    }
  }

  /// The index was written by who wrote the records: other counts mean that some were lost.
  void compare(const recording_counts &index, std::uint64_t end) {
    if (index.episodes != out_.counts.episodes || index.nodes != out_.counts.nodes ||
        index.tokens != out_.counts.tokens)
      damage(end, fmt::format("the index counts {} episodes, {} nodes, {} tokens; {}, {}, {} were "
                              "read",
                              index.episodes, index.nodes, index.tokens, out_.counts.episodes,
                              out_.counts.nodes, out_.counts.tokens));
  }

  void damage(std::uint64_t offset, std::string reason) {
    ++out_.damage_count;
    if (out_.damage.size() < listed)
      out_.damage.push_back({offset, 0, std::move(reason)});
  }

  recording_summary &out_;
  recording_tally tally_;
  std::map<group_key, number_spread> rewards_;
};

} // namespace

void number_spread::add(double value) noexcept {
  low = count == 0 ? value : std::min(low, value);
  high = count == 0 ? value : std::max(high, value);
  sum += value;
  ++count;
}

result<recording_summary> inspect_recording(const std::filesystem::path &path) {
  auto reader = recording_reader::open(path);
  if (!reader)
    return tl::unexpected(std::move(reader).error());
  return inspect_recording(std::move(*reader));
}

recording_summary inspect_recording(recording_reader reader) {
  recording_summary out;
  inspection all(out);
  while (const auto one = reader.next())
    all.add(*one);
  all.finish(reader);

  out.path = reader.name();
  out.source = reader.source();
  out.bytes = reader.bytes();
  out.finished = reader.finished();
  out.records[static_cast<std::size_t>(record_kind::index)] = out.finished ? 1 : 0;
  out.torn = reader.torn();
  out.bytes_skipped = reader.bytes_skipped();
  out.damage_count += reader.damage_count();
  for (const auto &place : reader.damage())
    if (out.damage.size() < listed)
      out.damage.push_back(place);
  std::sort(out.damage.begin(), out.damage.end(), [](const auto &a, const auto &b) {
    return std::tie(a.offset, a.reason) < std::tie(b.offset, b.reason);
  });
  return out;
}

} // namespace millrace
