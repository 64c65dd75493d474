// SPDX-License-Identifier: Apache-2.0
#include "actors/packer/sequence_plan.hpp"

#include <algorithm>

namespace millrace {

namespace {

using wire::StreamEncoding;
using wire::StreamRule;

using compact_values = std::optional<std::span<const float>>;

/// A node that is kept whole has exactly one compact value per true mask entry; of one that is cut
/// at least the kept ones are there.
status check_compact(std::string_view field, const compact_values &values, const piece &p) {
  const bool whole = p.tokens == p.node->token_ids.size();
  if (values && (whole ? values->size() != p.values : values->size() < p.values))
    return fail(errc::bad_value, "{} has {} values for {} true mask entries", field, values->size(),
                p.values);
  return {};
}

status check_full(std::string_view field, std::size_t size, const piece &p) {
  if (size != p.node->token_ids.size())
    return fail(errc::bad_value, "{} has {} values for {} token ids", field, size,
                p.node->token_ids.size());
  return {};
}

status check_piece(const piece &p) {
  MILLRACE_TRY(check_compact("logprobs", p.node->logprobs, p));
  MILLRACE_TRY(check_compact("advantages", p.node->advantages, p));
  MILLRACE_TRY(check_compact("reference_logprobs", p.node->reference_logprobs, p));
  if (p.node->rl_weights)
    MILLRACE_TRY(check_full("rl_weights", p.node->rl_weights->size(), p));
  if (p.node->ce_weights)
    MILLRACE_TRY(check_full("ce_weights", p.node->ce_weights->size(), p));
  if (p.node->ref_kl_weights)
    MILLRACE_TRY(check_full("ref_kl_weights", p.node->ref_kl_weights->size(), p));
  if (p.node->mm_token_type_ids)
    MILLRACE_TRY(check_full("mm_token_type_ids", p.node->mm_token_type_ids->size(), p));
  return {};
}

/// Calls f(node, place on the path) until it is true; whether it was.
template <class F> bool any_node(const sample_source &source, F &&f) {
  const auto &path = source.path->nodes;
  for (std::size_t i = 0; i < path.size(); ++i)
    if (f(source.nodes[path[i]], i))
      return true;
  return false;
}

bool any_echo(const sample_source &source) {
  const auto &path = *source.path;
  for (std::size_t i = 0; !source.echo.empty() && i < path.nodes.size(); ++i)
    if (path.ce_off[i] == 0 && source.echo[path.nodes[i]] != 0)
      return true;
  return false;
}

bool any_nonzero_weight(const sample_source &source, stream_id id) {
  if (id == stream_id::ce && any_echo(source))
    return true;
  const auto &off = id == stream_id::rl   ? source.path->rl_off
                    : id == stream_id::ce ? source.path->ce_off
                                          : source.path->ref_kl_off;
  return any_node(source, [&](const node_view &node, std::size_t i) {
    const auto &weights = weights_of(node, id);
    return weights && off[i] == 0 &&
           std::any_of(weights->begin(), weights->end(), [](float x) { return x != 0.0F; });
  });
}

/// Some trainable token of the branch has advantage 0, when the advantages came with the nodes.
bool any_zero_advantage(const sample_source &source) {
  return any_node(source, [&](const node_view &node, std::size_t i) {
    if (source.path->mask_off[i] != 0)
      return false;
    if (!node.advantages)
      return count_true(node.mask) > 0;
    return std::any_of(node.advantages->begin(), node.advantages->end(),
                       [](float x) { return x == 0.0F; });
  });
}

stream_part constant(StreamEncoding encoding, float value) {
  return {.present = true, .encoding = encoding, .value = value};
}

stream_part compact() { return {.present = true, .encoding = StreamEncoding::Valued}; }

stream_part advantages_part(const sample_source &source) {
  if (source.advantage_rule == wire::AdvantageRule::Constant)
    return constant(StreamEncoding::OnValued, source.advantage);
  const auto has = [](const node_view &node, std::size_t) { return node.advantages.has_value(); };
  return any_node(source, has) ? compact() : stream_part{};
}

stream_part ref_logprobs_part(const sample_source &source) {
  const auto has = [](const node_view &node, std::size_t) {
    return node.reference_logprobs.has_value();
  };
  return any_node(source, has) ? compact() : stream_part{};
}

result<stream_part> weights_part(const sample_source &source, const wire::StreamSpec &spec,
                                 stream_id id) {
  switch (spec.rule()) {
  case StreamRule::Absent:
    return stream_part{};
  case StreamRule::Nodes:
    if (!any_nonzero_weight(source, id))
      return stream_part{};
    return stream_part{.present = true, .encoding = StreamEncoding::Tokens};
  case StreamRule::Zeros:
    return constant(StreamEncoding::Everywhere, 0);
  case StreamRule::OnMask:
    return constant(StreamEncoding::OnTrainable, spec.value());
  case StreamRule::NodesAndOnMask:
    if (!any_nonzero_weight(source, id))
      return constant(StreamEncoding::OnTrainable, spec.value());
    return stream_part{.present = true,
                       .encoding = StreamEncoding::Tokens,
                       .value = spec.value(),
                       .on_mask = true};
  }
  return fail(errc::bad_value, "unknown stream rule {}", static_cast<int>(spec.rule()));
}

/// Pruning changes an rl stream only where a trainable token has advantage 0 and a nonzero weight;
/// where nothing changes the stream stays as it was, also absent.
stream_part prune(const sample_source &source, stream_part rl, const stream_part &advantages) {
  if (!advantages.present)
    return rl;
  const bool one_number = source.advantage_rule == wire::AdvantageRule::Constant;
  if (one_number && source.advantage != 0.0F)
    return rl;
  if (rl.present && rl.encoding == StreamEncoding::Tokens) {
    rl.pruned = true;
    return rl;
  }
  const auto base = rl.present ? rl : constant(StreamEncoding::OnTrainable, 1);
  if (base.value == 0.0F || source.path->trainable == 0)
    return rl;
  if (one_number)
    return constant(StreamEncoding::Everywhere, 0);
  if (!any_zero_advantage(source))
    return rl;
  return {.present = true, .encoding = StreamEncoding::Valued, .value = base.value, .pruned = true};
}

status plan_streams(sequence_plan &plan, bool dummy) {
  const auto &source = *plan.source;
  plan.at(stream_id::logprobs) = compact();
  plan.at(stream_id::temperatures) = constant(StreamEncoding::Everywhere, source.temperature);
  plan.at(stream_id::ref_logprobs) = ref_logprobs_part(source);
  if (dummy)
    return {};
  auto &advantages = plan.at(stream_id::advantages);
  advantages = advantages_part(source);
  for (const auto &[id, spec] : {std::pair{stream_id::rl, &source.rl},
                                 {stream_id::ce, &source.ce},
                                 {stream_id::ref_kl, &source.ref_kl}}) {
    auto part = weights_part(source, *spec, id);
    if (!part)
      return tl::unexpected(std::move(part).error());
    plan.at(id) = *part;
  }
  if (source.prune_rl)
    plan.at(stream_id::rl) = prune(source, plan.at(stream_id::rl), advantages);
  return {};
}

status cut_path(const sample_source &source, sequence_plan &plan, std::vector<piece> &pieces) {
  const auto &path = *source.path;
  const auto first = pieces.size();
  for (std::size_t i = 0; i < path.nodes.size() && plan.tokens < source.tokens; ++i) {
    const auto &node = source.nodes[path.nodes[i]];
    piece p{.node = &node,
            .mask_off = path.mask_off[i] != 0,
            .rl_off = path.rl_off[i] != 0,
            .ce_off = path.ce_off[i] != 0,
            .ref_kl_off = path.ref_kl_off[i] != 0,
            .echo = source.echo.empty() ? 0.0F : source.echo[path.nodes[i]]};
    p.tokens = static_cast<std::uint32_t>(
        std::min<std::size_t>(node.token_ids.size(), source.tokens - plan.tokens));
    auto checked = check_full("mask", node.mask.size(), p);
    if (checked) {
      p.values = static_cast<std::uint32_t>(count_true(node.mask.first(p.tokens)));
      checked = check_piece(p);
    }
    if (!checked)
      return with_context(std::move(checked).error(), fmt::format("node {}", path.nodes[i]));
    plan.tokens += p.tokens;
    plan.values += p.values;
    pieces.push_back(p);
  }
  plan.pieces = std::span<const piece>(pieces).subspan(first);
  return {};
}

} // namespace

std::size_t sequence_plan::floats(const stream_part &part) const noexcept {
  switch (part.encoding) {
  case StreamEncoding::Tokens:
    return tokens;
  case StreamEncoding::Valued:
    return values;
  default:
    return 1;
  }
}

const std::optional<std::span<const float>> &weights_of(const node_view &node, stream_id id) {
  switch (id) {
  case stream_id::rl:
    return node.rl_weights;
  case stream_id::ce:
    return node.ce_weights;
  default:
    return node.ref_kl_weights;
  }
}

bool weights_off(const piece &p, stream_id id) noexcept {
  switch (id) {
  case stream_id::rl:
    return p.rl_off;
  case stream_id::ce:
    return p.ce_off;
  default:
    return p.ref_kl_off;
  }
}

result<sequence_plan> plan_sequence(const sample_source &source, bool dummy,
                                    std::vector<piece> &pieces) {
  MILLRACE_ASSERT(pieces.capacity() - pieces.size() >= source.path->nodes.size(),
                  "{} pieces of {}, a path of {}", pieces.size(), pieces.capacity(),
                  source.path->nodes.size());
  sequence_plan plan;
  plan.source = &source;
  MILLRACE_TRY(cut_path(source, plan, pieces));
  if (plan.tokens == 0 || plan.tokens != source.tokens)
    return fail(errc::bad_value, "it has {} tokens, {} are to be kept", plan.tokens, source.tokens);
  plan.type_ids = any_node(source, [](const node_view &node, std::size_t) {
    return node.mm_token_type_ids.has_value();
  });
  plan.kept_tokens = any_node(
      source, [](const node_view &node, std::size_t) { return node.kept_counts.has_value(); });
  MILLRACE_TRY(plan_streams(plan, dummy));
  return plan;
}

void fill_absent_streams(std::span<sequence_plan> sequences) {
  for (std::size_t i = 0; i < stream_count; ++i) {
    const auto has = [i](const sequence_plan &s) { return s.streams[i].present; };
    if (std::none_of(sequences.begin(), sequences.end(), has))
      continue;
    const float value = i == static_cast<std::size_t>(stream_id::rl) ? 1.0F : 0.0F;
    for (auto &sequence : sequences)
      if (!sequence.streams[i].present)
        sequence.streams[i] = constant(StreamEncoding::Everywhere, value);
  }
}

} // namespace millrace
