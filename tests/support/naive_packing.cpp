// SPDX-License-Identifier: Apache-2.0
#include "tests/support/naive_packing.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include <boost/test/unit_test.hpp>

namespace millrace::test {

namespace {

using floats = std::vector<float>;
using nullable = std::optional<floats>;

struct naive_sample {
  std::vector<std::int64_t> ids;
  std::vector<std::uint8_t> mask;
  floats logprobs;
  nullable advantages, ref_logprobs, rl, ce, ref_kl;
  std::optional<std::vector<std::int64_t>> types;
  std::optional<made_array> experts;
  std::map<std::string, made_array> mm;
  std::optional<std::vector<std::vector<std::int32_t>>> kept; ///< ids that each token could be
};

std::vector<std::int32_t> int32s(const array_view &array) {
  std::vector<std::byte> bytes;
  for (auto piece : array.pieces)
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  std::vector<std::int32_t> out(bytes.size() / sizeof(std::int32_t));
  if (!out.empty())
    std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

void add_kept(const node_view &node, std::vector<std::vector<std::int32_t>> &kept) {
  if (!node.kept_counts) {
    kept.resize(kept.size() + node.token_ids.size());
    return;
  }
  const auto ids = int32s(*node.kept_ids);
  auto at = ids.begin();
  for (auto count : int32s(*node.kept_counts)) {
    kept.emplace_back(at, at + count);
    at += count;
  }
}

void add_rows(made_array &to, const array_view &from) {
  to.name = from.name;
  to.type = from.type;
  const auto rows = to.shape.empty() ? 0 : to.shape[0];
  to.shape.assign(from.shape.begin(), from.shape.end());
  to.shape[0] += rows;
  for (auto piece : from.pieces)
    to.bytes.insert(to.bytes.end(), piece.begin(), piece.end());
}

void keep_rows(made_array &array, std::uint64_t rows) {
  const auto row = array.shape[0] == 0 ? 0 : array.bytes.size() / array.shape[0];
  array.shape[0] = rows;
  array.bytes.resize(rows * row);
}

/// Compact to full over the branch; null if every node has null.
nullable
spread(const sample_source &s,
       const std::function<std::optional<std::span<const float>>(const node_view &)> &get) {
  floats out;
  bool any = false;
  for (auto i : s.path->nodes) {
    const auto &node = s.nodes[i];
    const auto values = get(node);
    any = any || values.has_value();
    std::size_t next = 0;
    for (auto m : node.mask)
      out.push_back(m != 0 && values ? (*values)[next++] : 0.0F);
  }
  return any ? nullable(out) : std::nullopt;
}

nullable weights(const sample_source &s, std::optional<std::span<const float>> node_view::*field,
                 const std::vector<std::uint8_t> &off) {
  floats out;
  for (std::size_t p = 0; p < s.path->nodes.size(); ++p) {
    const auto &node = s.nodes[s.path->nodes[p]];
    for (std::size_t t = 0; t < node.token_ids.size(); ++t)
      out.push_back(node.*field && off[p] == 0 ? (*(node.*field))[t] : 0.0F);
  }
  const bool any = std::any_of(out.begin(), out.end(), [](float x) { return x != 0; });
  return any ? nullable(out) : std::nullopt;
}

nullable apply(const wire::StreamSpec &spec, nullable nodes,
               const std::vector<std::uint8_t> &mask) {
  if (spec.rule() == wire::StreamRule::Absent)
    return std::nullopt;
  if (spec.rule() == wire::StreamRule::Nodes)
    return nodes;
  floats out(mask.size(), 0.0F);
  if (spec.rule() == wire::StreamRule::NodesAndOnMask && nodes)
    out = *nodes;
  if (spec.rule() != wire::StreamRule::Zeros)
    for (std::size_t i = 0; i < mask.size(); ++i)
      if (mask[i] != 0)
        out[i] = spec.value();
  return out;
}

void prune(naive_sample &s) {
  if (!s.advantages)
    return;
  floats rl(s.mask.begin(), s.mask.end());
  if (s.rl)
    rl = *s.rl;
  bool changed = false;
  for (std::size_t i = 0; i < rl.size(); ++i)
    if (s.mask[i] != 0 && (*s.advantages)[i] == 0 && rl[i] != 0) {
      rl[i] = 0;
      changed = true;
    }
  if (changed)
    s.rl = rl;
}

void add_nodes(const sample_source &source, naive_sample &s) {
  bool all_experts = true;
  made_array experts;
  std::vector<std::int64_t> types;
  bool any_types = false;
  std::vector<std::vector<std::int32_t>> kept;
  bool any_kept = false;
  for (std::size_t p = 0; p < source.path->nodes.size(); ++p) {
    const auto &node = source.nodes[source.path->nodes[p]];
    add_kept(node, kept);
    any_kept = any_kept || node.kept_counts;
    s.ids.insert(s.ids.end(), node.token_ids.begin(), node.token_ids.end());
    for (auto m : node.mask)
      s.mask.push_back(source.path->mask_off[p] != 0 ? 0 : m);
    if (!node.token_ids.empty()) {
      all_experts = all_experts && node.routed_experts;
      if (node.routed_experts)
        add_rows(experts, *node.routed_experts);
    }
    any_types = any_types || node.mm_token_type_ids;
    for (std::size_t t = 0; t < node.token_ids.size(); ++t)
      types.push_back(node.mm_token_type_ids ? (*node.mm_token_type_ids)[t] : 0);
    for (const auto &tensor : node.tensors)
      add_rows(s.mm[std::string(tensor.name)], tensor);
  }
  if (all_experts)
    s.experts = experts;
  if (any_types)
    s.types = types;
  if (any_kept)
    s.kept = kept;
}

void cut(naive_sample &s, const sample_source &source) {
  const auto n = source.tokens;
  const bool images = n < s.ids.size() && s.types && !s.mm.empty();
  s.ids.resize(n);
  s.mask.resize(n);
  s.logprobs.resize(n);
  for (auto *stream : {&s.advantages, &s.ref_logprobs, &s.rl, &s.ce, &s.ref_kl})
    if (*stream)
      (*stream)->resize(n);
  if (s.types)
    s.types->resize(n);
  if (s.experts)
    keep_rows(*s.experts, n);
  if (s.kept)
    s.kept->resize(n);
  if (!images)
    return;
  if (source.images == 0) {
    s.mm.clear();
    return;
  }
  auto &grid = s.mm.at("image_grid_thw");
  std::uint64_t patches = 0;
  for (std::size_t i = 0; i < source.images; ++i) {
    std::array<std::int64_t, 3> row{};
    std::memcpy(row.data(), grid.bytes.data() + i * sizeof row, sizeof row);
    patches += static_cast<std::uint64_t>(row[0] * row[1] * row[2]);
  }
  for (auto &[name, array] : s.mm)
    keep_rows(array, name == "image_grid_thw" ? source.images : patches);
}

naive_sample make_sample(const sample_source &source) {
  naive_sample s;
  add_nodes(source, s);
  s.logprobs = *spread(source, [](const node_view &n) { return std::optional(n.logprobs); });
  s.ref_logprobs = spread(source, [](const node_view &n) { return n.reference_logprobs; });
  if (source.advantage_rule == wire::AdvantageRule::Nodes) {
    s.advantages = spread(source, [](const node_view &n) { return n.advantages; });
  } else {
    floats constant;
    for (auto i : source.path->nodes)
      for (auto m : source.nodes[i].mask)
        constant.push_back(m != 0 ? source.advantage : 0.0F);
    s.advantages = constant;
  }
  const auto &path = *source.path;
  s.rl = apply(source.rl, weights(source, &node_view::rl_weights, path.rl_off), s.mask);
  s.ce = apply(source.ce, weights(source, &node_view::ce_weights, path.ce_off), s.mask);
  s.ref_kl =
      apply(source.ref_kl, weights(source, &node_view::ref_kl_weights, path.ref_kl_off), s.mask);
  if (source.prune_rl)
    prune(s);
  cut(s, source);
  return s;
}

template <class T> void append(std::vector<T> &to, const std::vector<T> &from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// Joins a nullable stream over samples: absent shares are `fill`.
nullable join(const std::vector<naive_sample> &samples, nullable naive_sample::*field, float fill) {
  floats out;
  bool any = false;
  for (const auto &s : samples) {
    any = any || s.*field;
    append(out, s.*field ? *(s.*field) : floats(s.ids.size(), fill));
  }
  return any ? nullable(out) : std::nullopt;
}

void join_arrays(const std::vector<naive_sample> &samples, naive_batch &out) {
  std::vector<std::int64_t> types;
  bool any_types = false;
  for (const auto &s : samples) {
    any_types = any_types || s.types;
    append(types, s.types ? *s.types : std::vector<std::int64_t>(s.ids.size(), 0));
    if (s.experts) {
      if (!out.routed_experts)
        out.routed_experts.emplace();
      add_rows(*out.routed_experts, s.experts->view(0));
    }
    for (const auto &[name, array] : s.mm)
      add_rows(out.mm_kwargs[name], array.view(0));
  }
  if (any_types)
    out.mm_token_type_ids = types;
  if (std::none_of(samples.begin(), samples.end(), [](const auto &s) { return s.kept; }))
    return;
  out.kept_tokens.emplace();
  for (const auto &s : samples)
    append(*out.kept_tokens,
           s.kept ? *s.kept : std::vector<std::vector<std::int32_t>>(s.ids.size()));
}

void pad(naive_batch &out, std::size_t padding) {
  out.padding = static_cast<std::int64_t>(padding);
  out.sequence_lengths.back() += out.padding;
  for (std::size_t i = 0; i < padding; ++i) {
    out.input_ids.push_back(1);
    out.loss_mask.push_back(0);
    out.position_ids.push_back(static_cast<std::int64_t>(i));
    out.temperatures.push_back(1);
    out.advantages.push_back(0);
    out.inference_logprobs.push_back(0);
    for (auto *stream : {&out.ref_logprobs, &out.rl_weights, &out.ce_weights, &out.ref_kl_weights})
      if (*stream)
        (*stream)->push_back(0);
    if (out.mm_token_type_ids)
      out.mm_token_type_ids->push_back(0);
    if (out.kept_tokens)
      out.kept_tokens->emplace_back();
  }
  if (out.routed_experts && out.routed_experts->shape[0] > 0) {
    auto &experts = *out.routed_experts;
    const auto row = experts.bytes.size() / experts.shape[0];
    experts.shape[0] += padding;
    experts.bytes.resize(experts.shape[0] * row);
  }
}

template <class T, class V>
void check_values(const char *name, const host_array<T> &got, const std::vector<V> &want) {
  BOOST_TEST_CONTEXT(name) {
    BOOST_TEST(got.has_value());
    BOOST_TEST(got.values() == want, boost::test_tools::per_element());
  }
}

template <class T, class V>
void check_nullable(const char *name, const host_array<T> &got,
                    const std::optional<std::vector<V>> &want) {
  BOOST_TEST_CONTEXT(name) {
    BOOST_TEST(got.has_value() == want.has_value());
    if (want)
      check_values(name, got, *want);
  }
}

void check_array(const array_tensor &got, const made_array &want) {
  BOOST_TEST(got.name == want.name);
  BOOST_TEST((got.type == want.type));
  BOOST_TEST(got.shape == want.shape, boost::test_tools::per_element());
  BOOST_TEST(std::ranges::equal(got.bytes.values(), want.bytes));
}

void check_kept(const micro_batch_tensors &got,
                const std::optional<std::vector<std::vector<std::int32_t>>> &want) {
  BOOST_TEST_REQUIRE(got.kept_counts.has_value() == want.has_value());
  BOOST_TEST(got.kept_ids.has_value() == want.has_value());
  if (!want)
    return;
  std::vector<std::int32_t> counts;
  std::vector<std::int32_t> ids;
  for (const auto &token : *want) {
    counts.push_back(static_cast<std::int32_t>(token.size()));
    append(ids, token);
  }
  for (const auto &[tensor, values] :
       {std::pair{&got.kept_counts, &counts}, {&got.kept_ids, &ids}}) {
    BOOST_TEST((tensor->type == dtype::int32));
    BOOST_TEST(tensor->shape == std::vector<std::uint64_t>{values->size()},
               boost::test_tools::per_element());
    BOOST_TEST(std::ranges::equal(tensor->bytes.values(), std::as_bytes(std::span(*values))));
  }
}

} // namespace

naive_batch pack_naively(const bin &plan) {
  naive_batch out;
  std::vector<naive_sample> samples;
  for (const auto &source : plan.samples) {
    samples.push_back(make_sample(source));
    const auto &s = samples.back();
    append(out.input_ids, s.ids);
    append(out.loss_mask, s.mask);
    append(out.inference_logprobs, s.logprobs);
    append(out.advantages, s.advantages ? *s.advantages : floats(s.ids.size(), 0.0F));
    append(out.temperatures, floats(s.ids.size(), source.temperature));
    for (std::size_t i = 0; i < s.ids.size(); ++i)
      out.position_ids.push_back(static_cast<std::int64_t>(i));
    out.sequence_lengths.push_back(static_cast<std::int64_t>(s.ids.size()));
    out.env_names.emplace_back(source.env);
  }
  out.ref_logprobs = join(samples, &naive_sample::ref_logprobs, 0);
  out.rl_weights = join(samples, &naive_sample::rl, 1);
  out.ce_weights = join(samples, &naive_sample::ce, 0);
  out.ref_kl_weights = join(samples, &naive_sample::ref_kl, 0);
  join_arrays(samples, out);
  pad(out, plan.padding);
  if (plan.dummy) {
    std::fill(out.loss_mask.begin(), out.loss_mask.end(), std::uint8_t{0});
    std::fill(out.advantages.begin(), out.advantages.end(), 0.0F);
    out.rl_weights.reset();
    out.ce_weights.reset();
    out.ref_kl_weights.reset();
  }
  return out;
}

void check_equal(const micro_batch_tensors &got, const naive_batch &want) {
  check_values("input_ids", got.input_ids, want.input_ids);
  check_values("loss_mask", got.loss_mask, want.loss_mask);
  check_values("advantages", got.advantages, want.advantages);
  check_values("inference_logprobs", got.inference_logprobs, want.inference_logprobs);
  check_values("position_ids", got.position_ids, want.position_ids);
  check_values("temperatures", got.temperatures, want.temperatures);
  check_values("sequence_lengths", got.sequence_lengths, want.sequence_lengths);
  check_values("seq_lens", got.seq_lens, want.sequence_lengths);
  BOOST_TEST(got.env_names == want.env_names, boost::test_tools::per_element());
  BOOST_TEST(got.padding == want.padding);
  check_nullable("ref_logprobs", got.ref_logprobs, want.ref_logprobs);
  check_nullable("rl_weights", got.rl_weights, want.rl_weights);
  check_nullable("ce_weights", got.ce_weights, want.ce_weights);
  check_nullable("ref_kl_weights", got.ref_kl_weights, want.ref_kl_weights);
  check_nullable("mm_token_type_ids", got.mm_token_type_ids, want.mm_token_type_ids);
  BOOST_TEST(got.routed_experts.has_value() == want.routed_experts.has_value());
  if (want.routed_experts)
    check_array(got.routed_experts, *want.routed_experts);
  BOOST_TEST_REQUIRE(got.mm_kwargs().size() == want.mm_kwargs.size());
  check_kept(got, want.kept_tokens);
  std::size_t i = 0;
  for (const auto &[name, array] : want.mm_kwargs)
    check_array(got.mm_kwargs()[i++], array);
}

} // namespace millrace::test
