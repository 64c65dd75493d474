// SPDX-License-Identifier: Apache-2.0
#include "schema/episode.hpp"

#include <cmath>

#include "schema/limits.hpp"

namespace millrace {

namespace {

std::optional<std::span<const float>> optional_span(const flatbuffers::Vector<float> *vector) {
  if (vector == nullptr)
    return std::nullopt;
  return span_of(vector);
}

status claim_array(const wire::Array *array, const message &parts, part_claims &claims) {
  if (array == nullptr)
    return {};
  if (auto view = view_array(*array, parts); !view)
    return tl::unexpected(std::move(view).error());
  return claims.take(*array);
}

/// Calls f(array or null) for each raw array of a node until one is refused.
template <class F> status for_arrays(const wire::Node &node, F &&f) {
  for (const auto *array : {node.routed_experts(), node.kept_counts(), node.kept_ids()})
    MILLRACE_TRY(f(array));
  if (node.tensors() != nullptr)
    for (const auto *tensor : *node.tensors())
      MILLRACE_TRY(f(tensor));
  return {};
}

status check_checksum(const wire::Array *array, const message &parts) {
  if (array == nullptr)
    return {};
  return check_array(*array, *view_array(*array, parts));
}

std::string place_of(const wire::EpisodeFrame &frame, const wire::Node &node) {
  return fmt::format("episode '{}', trace {}, node {}", text_of(frame.episode()), node.trace(),
                     node.index());
}

status check_result(const wire::TraceResult &trace, std::uint32_t vocab_size) {
  if (!std::isfinite(trace.reward()))
    return fail(errc::bad_value, "reward is {}", trace.reward());
  const auto hint = span_of(trace.hint_token_ids());
  for (std::size_t i = 0; i < hint.size(); ++i)
    if (hint[i] < 0 || (vocab_size != 0 && static_cast<std::uint32_t>(hint[i]) >= vocab_size))
      return fail(errc::bad_value, "hint_token_ids[{}] is {}, outside the vocabulary of {}", i,
                  hint[i], vocab_size);
  if (const auto size = text_of(trace.hint()).size(); size > limits::hint_bytes)
    return fail(errc::too_large, "hint has {} bytes, at most {} are allowed", size,
                limits::hint_bytes);
  return {};
}

status check_finish(const wire::EpisodeFrame &frame, const wire::EpisodeEnd &finish,
                    std::uint32_t vocab_size) {
  const auto place = fmt::format("episode '{}', finish", text_of(frame.episode()));
  if (static_cast<int>(finish.status()) > static_cast<int>(wire::EpisodeStatus::Rejected))
    return with_context(
        {errc::bad_value, fmt::format("unknown status {}", static_cast<int>(finish.status()))},
        place);
  if (finish.cancel_reason() > wire::CancelReason::Stale)
    return with_context({errc::bad_value, fmt::format("unknown cancel reason {}",
                                                      static_cast<int>(finish.cancel_reason()))},
                        place);
  if (finish.frames() != frame.frame() + 1)
    return with_context({errc::bad_value, fmt::format("it stands in frame {} and counts {} frames",
                                                      frame.frame(), finish.frames())},
                        place);
  if (finish.tokens() > limits::tokens_per_episode)
    return with_context({errc::too_large, fmt::format("{} tokens, at most {} are allowed",
                                                      finish.tokens(), limits::tokens_per_episode)},
                        place);
  if (finish.traces() == nullptr)
    return {};
  for (flatbuffers::uoffset_t i = 0; i < finish.traces()->size(); ++i)
    if (auto checked = check_result(*finish.traces()->Get(i), vocab_size); !checked)
      return with_context(std::move(checked).error(), fmt::format("{}, trace {}", place, i));
  return {};
}

/// What a trace came to stands at the end of its episode; the nodes may have come before.
status check_hints(const wire::EpisodeFrame &frame) {
  const auto *finish = frame.finish();
  if (finish == nullptr || frame.eval() || finish->status() != wire::EpisodeStatus::Ok ||
      finish->traces() == nullptr)
    return {};
  for (flatbuffers::uoffset_t i = 0; i < finish->traces()->size(); ++i) {
    const auto &trace = *finish->traces()->Get(i);
    if (trace.ok() && trace.agent_trainable() && span_of(trace.hint_token_ids()).empty() &&
        text_of(trace.hint()).empty())
      return fail(errc::bad_value,
                  "episode '{}', trace {}: it has neither hint_token_ids nor a hint, and opsd "
                  "scores it after one",
                  text_of(frame.episode()), i);
  }
  return {};
}

status check_length(const wire::EpisodeFrame &frame, std::string_view field,
                    std::string_view name) {
  if (name.size() > limits::name_bytes)
    return fail(errc::too_large, "episode '{}': {} has {} bytes, at most {} are allowed",
                text_of(frame.episode()), field, name.size(), limits::name_bytes);
  return {};
}

status check_names(const wire::EpisodeFrame &frame) {
  const auto env = text_of(frame.key()->env());
  if (env.empty() || env == "all")
    return fail(errc::bad_value, "episode '{}': key.env is '{}': {}", text_of(frame.episode()), env,
                env.empty() ? "an environment needs a name" : "that name is reserved");
  if (frame.episode()->size() == 0)
    return fail(errc::bad_value, "an episode of environment '{}' has no id", env);
  if (!has_usable_names(frame))
    return fail(errc::too_large, "an episode has a name of more than {} bytes", limits::name_bytes);
  if (frame.roles() != nullptr)
    for (const auto *role : *frame.roles())
      MILLRACE_TRY(check_length(frame, "a role", text_of(role)));
  if (frame.finish() == nullptr)
    return {};
  MILLRACE_TRY(check_length(frame, "finish.reason", text_of(frame.finish()->reason())));
  if (frame.finish()->traces() != nullptr)
    for (const auto *trace : *frame.finish()->traces()) {
      MILLRACE_TRY(check_length(frame, "a trace id", text_of(trace->id())));
      MILLRACE_TRY(check_length(frame, "an agent's name", text_of(trace->agent())));
    }
  return {};
}

} // namespace

std::string group_key::text() const {
  return fmt::format("{}/{}/{}{}", env, task, group, run.empty() ? "" : " of run " + run);
}

group_key key_of(const wire::GroupKey &key) {
  return {std::string(text_of(key.run())), std::string(text_of(key.env())),
          std::string(text_of(key.task())), std::string(text_of(key.group()))};
}

flatbuffers::Offset<wire::GroupKey> create_key(flatbuffers::FlatBufferBuilder &builder,
                                               const group_key &key) {
  const auto run = builder.CreateString(key.run);
  const auto env = builder.CreateString(key.env);
  const auto task = builder.CreateString(key.task);
  const auto group = builder.CreateString(key.group);
  return wire::CreateGroupKey(builder, run, env, task, group);
}

result<episode_frame> episode_frame::parse(message parts,
                                           const std::shared_ptr<memory_meter> &meter) {
  if (parts.empty() || parts.size() > limits::parts)
    return fail(errc::bad_format, "an episode frame of {} parts", parts.size());
  auto table = millrace::parse<wire::EpisodeFrame>(parts.front(), meter);
  if (!table)
    return tl::unexpected(std::move(table).error());
  parts.front() = table->bytes();
  part_claims claims(parts.size());
  if (const auto *nodes = (*table)->nodes(); nodes != nullptr)
    for (const auto *node : *nodes) {
      auto found = for_arrays(
          *node, [&](const wire::Array *array) { return claim_array(array, parts, claims); });
      if (!found)
        return with_context(std::move(found).error(), place_of(**table, *node));
    }
  return episode_frame(std::move(*table), std::move(parts));
}

std::uint32_t episode_frame::node_count() const noexcept {
  return body_->nodes() == nullptr ? 0 : body_->nodes()->size();
}

std::uint64_t episode_frame::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const auto &part : parts_)
    sum += part.size();
  return sum;
}

node_view episode_frame::node(std::uint32_t i) const {
  const auto &in = *body_->nodes()->Get(i);
  node_view out;
  out.parent = in.parent();
  if (const auto *roles = body_->roles(); roles != nullptr && in.role() < roles->size())
    out.role = text_of(roles->Get(in.role()));
  out.sampled = in.sampled();
  out.token_ids = span_of(in.token_ids());
  out.mask = span_of(in.mask());
  out.is_content = span_of(in.is_content());
  out.logprobs = span_of(in.logprobs());
  out.advantages = optional_span(in.advantages());
  out.reference_logprobs = optional_span(in.reference_logprobs());
  out.rl_weights = optional_span(in.rl_weights());
  out.ce_weights = optional_span(in.ce_weights());
  out.ref_kl_weights = optional_span(in.ref_kl_weights());
  if (in.mm_token_type_ids() != nullptr)
    out.mm_token_type_ids = span_of(in.mm_token_type_ids());
  if (in.echo_mask() != nullptr)
    out.echo_mask = span_of(in.echo_mask());
  // parse() has read these descriptors: they are good.
  if (in.routed_experts() != nullptr)
    out.routed_experts = *view_array(*in.routed_experts(), parts_);
  if (in.kept_counts() != nullptr)
    out.kept_counts = *view_array(*in.kept_counts(), parts_);
  if (in.kept_ids() != nullptr)
    out.kept_ids = *view_array(*in.kept_ids(), parts_);
  if (in.tensors() != nullptr)
    for (const auto *tensor : *in.tensors())
      out.tensors.push_back(*view_array(*tensor, parts_));
  return out;
}

bool has_usable_names(const wire::EpisodeFrame &frame) noexcept {
  const auto &key = *frame.key();
  for (const auto *name : {key.run(), key.env(), key.task(), key.group(), frame.episode()})
    if (text_of(name).size() > limits::name_bytes)
      return false;
  return true;
}

status check_elements(const episode_frame &frame, const element_limits &demands) {
  const auto &table = frame.table();
  MILLRACE_TRY(check_names(table));
  if (demands.frozen && !table.eval() && table.frozen() != *demands.frozen)
    return fail(errc::bad_value,
                "episode '{}': {} sampled it, and the sampler of environment '{}' is {}",
                text_of(table.episode()), table.frozen() ? "a frozen model" : "the live policy",
                text_of(table.key()->env()), *demands.frozen ? "frozen" : "live");
  for (std::uint32_t i = 0; i < frame.node_count(); ++i) {
    const auto &node = *table.nodes()->Get(i);
    auto found = check_node(frame.node(i), demands.vocab_size);
    if (found && node.index() >= limits::nodes_per_trace)
      found = fail(errc::too_large, "a trace has at most {} nodes", limits::nodes_per_trace);
    if (found && (node.parent() < -1 || node.parent() >= static_cast<std::int64_t>(node.index())))
      found = fail(errc::bad_value, "parent {} does not come before it", node.parent());
    if (found && (table.roles() == nullptr || node.role() >= table.roles()->size()))
      found = fail(errc::bad_value, "role {} is not in the frame's table", node.role());
    if (found)
      found = for_arrays(
          node, [&](const wire::Array *array) { return check_checksum(array, frame.parts()); });
    if (!found)
      return with_context(std::move(found).error(), place_of(table, node));
  }
  if (table.finish() != nullptr)
    MILLRACE_TRY(check_finish(table, *table.finish(), demands.vocab_size));
  return demands.hints ? check_hints(table) : status();
}

} // namespace millrace
