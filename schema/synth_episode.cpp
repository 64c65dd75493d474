// SPDX-License-Identifier: Apache-2.0
#include "schema/synth_episode.hpp"

#include <algorithm>
#include <array>

namespace millrace {

namespace {

constexpr std::uint32_t template_tokens = 3; ///< what a chat template puts before a message
constexpr std::uint32_t first_text_id = 16;  ///< below it: template tokens
constexpr std::uint32_t image_id = 12;       ///< stands for one token of an image
constexpr std::uint32_t patches_per_token = 4;

/// Short ones are more common: the mean lies at a quarter of the way.
std::uint32_t length_in(random_source &random, synth_length bounds) {
  const std::uint64_t u = random.next() >> 48;
  const std::uint64_t v = random.next() >> 48;
  return bounds.low +
         static_cast<std::uint32_t>(((bounds.high - bounds.low) * (u * v >> 16)) >> 16);
}

template <class T> frame bytes_of(const std::vector<T> &values) {
  return frame::copy_of(std::as_bytes(std::span(values)));
}

/// Makes up the nodes of one trace.
class trace_maker {
public:
  trace_maker(const synth_preset &preset, const synth_environment &env, std::uint16_t trace)
      : preset_(preset), env_(env), trace_(trace) {}

  /// The system message and the task: the same for a whole group.
  void prompt(random_source group) {
    add(group, -1, "system", {30, 60}, false);
    add(group, 0, "user", env_.prompt, env_.image_percent > 0 && group.chance(env_.image_percent));
  }

  /// `turns` model turns, each but the last followed by what came back, under node `parent`.
  void play(random_source &random, std::int32_t parent, std::uint32_t turns,
            std::string_view back) {
    for (std::uint32_t i = 0; i < turns; ++i) {
      starts_.push_back({static_cast<std::uint32_t>(nodes_.size()), parent});
      parent = add(random, parent, "assistant", env_.answer, false);
      if (i + 1 < turns)
        parent = add(random, parent, back, env_.tool,
                     env_.image_percent > 0 && random.chance(env_.image_percent / 2));
    }
  }

  /// Takes a turn back and tries again from there: the branches share what came before.
  void fork(random_source &random) {
    const auto turn = random.below(static_cast<std::uint32_t>(starts_.size()));
    play(random, starts_[turn].parent, random.between(1, 2), "tool");
  }

  /// The nodes in pieces: the prompt, then one for each model turn.
  std::vector<std::vector<node_data>> pieces() && {
    std::vector<std::vector<node_data>> out;
    std::size_t at = 0;
    starts_.push_back({static_cast<std::uint32_t>(nodes_.size()), 0});
    for (const auto &start : starts_) {
      auto &piece = out.emplace_back();
      for (; at < start.node; ++at)
        piece.push_back(std::move(nodes_[at]));
    }
    return out;
  }

private:
  struct turn_start {
    std::uint32_t node;
    std::int32_t parent;
  };

  std::int32_t add(random_source &random, std::int32_t parent, std::string_view role,
                   synth_length length, bool image) {
    node_data node;
    node.trace = trace_;
    node.index = static_cast<std::uint32_t>(nodes_.size());
    node.parent = parent;
    node.role = role;
    node.sampled = role == "assistant";
    for (std::uint32_t i = 0; i < template_tokens; ++i)
      node.token_ids.push_back(static_cast<std::int32_t>(i + 1));
    if (image)
      add_image(random, node);
    const auto text = length_in(random, length);
    for (std::uint32_t i = 0; i < text; ++i)
      node.token_ids.push_back(
          static_cast<std::int32_t>(random.between(first_text_id, preset_.vocab_size - 1)));
    finish_streams(random, node);
    nodes_.push_back(std::move(node));
    return static_cast<std::int32_t>(nodes_.size()) - 1;
  }

  /// Mask and logprobs of a model turn, content flags of the others, and what the environment adds.
  void finish_streams(random_source &random, node_data &node) const {
    const auto n = node.token_ids.size();
    node.mask.assign(n, 0);
    if (node.sampled) {
      std::fill(node.mask.begin() + template_tokens, node.mask.end(), std::uint8_t{1});
      for (std::size_t i = template_tokens; i < n; ++i) // many tokens are certain: exactly 0
        node.logprobs.push_back(random.chance(40) ? 0.0F
                                                  : -static_cast<float>(random.below(4096)) / 1024);
    } else {
      node.is_content.assign(n, 1);
      std::fill_n(node.is_content.begin(), template_tokens, std::uint8_t{0});
    }
    if (env_.expert_layers > 0)
      add_experts(random, node);
    if (env_.image_percent > 0 && !node.mm_token_type_ids)
      node.mm_token_type_ids.emplace();
    if (node.mm_token_type_ids)
      node.mm_token_type_ids->resize(n, 0);
  }

  void add_experts(random_source &random, node_data &node) const {
    const auto n = node.token_ids.size();
    std::vector<std::uint8_t> chosen(n * env_.expert_layers * env_.expert_top_k);
    for (auto &expert : chosen)
      expert = static_cast<std::uint8_t>(random.below(env_.experts));
    node.routed_experts =
        array_data{"", dtype::uint8, {n, env_.expert_layers, env_.expert_top_k}, bytes_of(chosen)};
  }

  void add_image(random_source &random, node_data &node) const {
    const std::uint32_t high = random.between(3, 9);
    const std::uint32_t wide = random.between(3, 9);
    const auto tokens = high * wide;
    const auto patches = tokens * patches_per_token;
    node.token_ids.insert(node.token_ids.end(), tokens, static_cast<std::int32_t>(image_id));
    auto &types = node.mm_token_type_ids.emplace(node.token_ids.size(), std::uint8_t{1});
    std::fill_n(types.begin(), template_tokens, std::uint8_t{0});
    std::vector<float> pixels(std::size_t{patches} * env_.patch_values);
    for (auto &pixel : pixels)
      pixel = static_cast<float>(random.below(1024)) / 256 - 2;
    const std::vector<std::int64_t> grid{1, std::int64_t{2} * high, std::int64_t{2} * wide};
    node.tensors.push_back(
        {"pixel_values", dtype::float32, {patches, env_.patch_values}, bytes_of(pixels)});
    node.tensors.push_back({"image_grid_thw", dtype::int64, {1, 3}, bytes_of(grid)});
  }

  const synth_preset &preset_;
  const synth_environment &env_;
  std::uint16_t trace_;
  std::vector<node_data> nodes_;
  std::vector<turn_start> starts_;
};

/// What the rewards of a group have in common.
struct group_mood {
  bool uniform;
  std::uint32_t level; ///< of 5: how easy the task is

  group_mood(random_source random, const synth_environment &env)
      : uniform(random.chance(env.uniform_percent)), level(random.below(5)) {}

  double reward(random_source &random, const synth_environment &env) const {
    if (uniform)
      return level >= 3 ? 1.0 : 0.0;
    if (env.graded) {
      const auto quarters = random.below(level + 2);
      return std::min(4U, quarters + random.below(2)) / 4.0;
    }
    return random.below(6) <= level ? 1.0 : 0.0;
  }
};

/// How the episode ends, before anything was sampled.
finish_data draw_end(random_source &random, const synth_environment &env) {
  finish_data finish;
  const auto draw = random.below(100);
  if (draw < env.errored_percent) {
    finish.status = wire::EpisodeStatus::Errored;
    finish.reason = random.chance(50) ? "the sandbox did not answer in 300 s"
                                      : "the environment raised an exception";
  } else if (draw < env.errored_percent + env.cancelled_percent) {
    finish.status = wire::EpisodeStatus::Cancelled;
    finish.reason = "given up: the group took too long";
  }
  return finish;
}

/// Spreads the pieces over frames and fills in the counts.
std::vector<frame_data> frames_of(const frame_data &head, finish_data finish,
                                  std::vector<std::vector<node_data>> pieces) {
  if (pieces.empty())
    pieces.emplace_back(); // an episode that failed at once
  std::vector<frame_data> frames;
  for (auto &piece : pieces) {
    auto &frame = frames.emplace_back(head);
    frame.frame = static_cast<std::uint32_t>(frames.size() - 1);
    for (const auto &node : piece) {
      auto &trace = finish.traces[node.trace];
      ++finish.nodes;
      finish.tokens += node.token_ids.size();
      trace.total_tokens += node.token_ids.size();
      trace.turns += node.sampled ? 1 : 0;
      trace.output_tokens += node.logprobs.size();
    }
    frame.nodes = std::move(piece);
  }
  finish.frames = static_cast<std::uint32_t>(frames.size());
  frames.back().finish = std::move(finish);
  return frames;
}

} // namespace

group_key synth_key(const synth_preset &preset, const synth_place &place) {
  const auto &env = preset.environments[place.environment];
  // Every environment numbers its tasks from 0, and every other task has two groups.
  const auto task = place.group - place.group / 3;
  return {fmt::format("synth-{}", preset.name), std::string(env.name), fmt::format("{}", task),
          fmt::format("g{}", place.group)};
}

std::vector<frame_data> synth_episode(const synth_preset &preset, const random_source &seed,
                                      const synth_place &place) {
  const auto &env = preset.environments[place.environment];
  const auto group = seed.derive(place.environment).derive(place.group);
  auto random = group.derive(std::uint64_t{1} << 32 | place.episode);
  const group_mood mood(group.derive(1), env);

  frame_data head;
  head.key = synth_key(preset, place);
  head.episode = fmt::format("{}-{}-{}", env.name, place.group, place.episode);
  head.group_size = env.size_place == synth_size_place::record ? 0 : env.group_size;
  head.first_version = place.group / 4;
  head.last_version = head.first_version + (random.chance(20) ? 1 : 0);
  head.frozen = env.frozen;
  if (env.stale_percent > 0) {
    constexpr std::uint64_t of_the_future = 1'000'000;
    head.first_version = random.chance(env.stale_percent) ? 0 : of_the_future;
    head.last_version = of_the_future;
  }

  auto finish = draw_end(random, env);
  const bool ok = finish.status == wire::EpisodeStatus::Ok;
  std::vector<std::vector<node_data>> pieces;
  const std::array<std::string_view, 2> agents{"solver", env.rivals ? "rival" : "judge"};
  const std::uint16_t count = env.judged || env.rivals ? 2 : 1;
  for (std::uint16_t t = 0; t < count; ++t) {
    finish.traces.push_back({.id = fmt::format("{}-t{}", head.episode, t),
                             .agent = std::string(agents[t]),
                             .agent_trainable = t == 0 || env.rivals,
                             .ok = ok,
                             .reward = ok ? mood.reward(random, env) : 0.0});
    if (ok && t == 1 && env.rivals)
      finish.traces[1].reward = 1 - finish.traces[0].reward;
    if (!ok && random.chance(50))
      continue; // it failed before a model was asked
    trace_maker trace(preset, env, t);
    trace.prompt(group.derive(2U + t));
    const auto turns = random.between(env.turns_low, env.turns_high);
    trace.play(random, 1, ok ? turns : random.between(1, turns),
               env.judged || env.rivals ? "user" : "tool");
    if (random.chance(env.fork_percent))
      trace.fork(random);
    for (auto &piece : std::move(trace).pieces())
      pieces.push_back(std::move(piece));
  }
  return frames_of(head, std::move(finish), std::move(pieces));
}

} // namespace millrace
