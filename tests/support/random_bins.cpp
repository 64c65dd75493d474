// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_bins.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace millrace::test {

namespace {

constexpr std::array<std::string_view, 3> env_names = {"math", "code", "tools"};

template <class T>
std::optional<std::span<const T>> view_of(const std::optional<std::vector<T>> &v) {
  if (!v)
    return std::nullopt;
  return std::span<const T>(*v);
}

made_array array_of(std::string name, dtype type, std::vector<std::uint64_t> shape,
                    std::mt19937_64 &random) {
  made_array out{std::move(name), type, std::move(shape), {}};
  std::size_t bytes = size_of(type);
  for (auto dimension : out.shape)
    bytes *= dimension;
  out.bytes.resize(bytes);
  for (auto &byte : out.bytes)
    byte = static_cast<std::byte>(random());
  return out;
}

} // namespace

array_view made_array::view(std::size_t rows_in_first_piece) const {
  array_view out{.name = name, .type = type, .shape = shape, .pieces = {}};
  const std::span<const std::byte> all(bytes);
  const auto first = std::min(rows_in_first_piece * out.row_bytes(), all.size());
  if (first > 0)
    out.pieces.push_back(all.first(first));
  if (first < all.size())
    out.pieces.push_back(all.subspan(first));
  return out;
}

node_view made_node::view() const {
  node_view out;
  out.parent = parent;
  out.role = sampled ? "assistant" : "user";
  out.sampled = sampled;
  out.token_ids = ids;
  out.mask = mask;
  out.logprobs = logprobs;
  out.advantages = view_of(advantages);
  out.reference_logprobs = view_of(ref_logprobs);
  out.rl_weights = view_of(rl);
  out.ce_weights = view_of(ce);
  out.ref_kl_weights = view_of(ref_kl);
  out.mm_token_type_ids = view_of(types);
  if (experts)
    out.routed_experts = experts->view(ids.size() / 2);
  if (kept_counts) {
    out.kept_counts = kept_counts->view(ids.size() / 2);
    out.kept_ids = kept_ids->view(ids.size() / 3);
  }
  for (const auto &tensor : tensors)
    out.tensors.push_back(tensor.view(1));
  return out;
}

void made_trace::finish() {
  std::vector<node_shape> shapes;
  for (const auto &node : nodes) {
    views.push_back(node.view());
    shapes.push_back(shape_of(views.back()));
  }
  graph = *branches_of(shapes);
}

std::size_t bin_maker::pick(std::size_t low, std::size_t high) {
  return std::uniform_int_distribution<std::size_t>(low, high)(random_);
}

bool bin_maker::chance(double probability) {
  return std::bernoulli_distribution(probability)(random_);
}

float bin_maker::value() { return static_cast<float>(pick(1, 64)) / 16.0F - 2.03125F; }

std::vector<float> bin_maker::values(std::size_t count, double zeros) {
  std::vector<float> out(count);
  for (auto &x : out)
    x = chance(zeros) ? 0.0F : value();
  return out;
}

void bin_maker::add_images(made_node &node) {
  const auto images = pick(1, 2);
  auto grid = array_of("image_grid_thw", dtype::int64, {images, 3}, random_);
  std::uint64_t patches = 0;
  for (std::size_t i = 0; i < images; ++i) {
    const std::array<std::int64_t, 3> row = {1, static_cast<std::int64_t>(pick(1, 3)), 2};
    std::memcpy(grid.bytes.data() + i * sizeof row, row.data(), sizeof row);
    patches += static_cast<std::uint64_t>(row[0] * row[1] * row[2]);
  }
  node.tensors.push_back(array_of("pixel_values", dtype::float32, {patches, 5}, random_));
  node.tensors.push_back(std::move(grid));
  node.tensors.push_back(array_of("extra", dtype::uint8, {patches}, random_));
  node.types.emplace(node.ids.size(), std::uint8_t{0});
  for (auto &type : *node.types)
    type = chance(0.5) ? 1 : 0;
}

void bin_maker::add_kept_tokens(made_node &node) {
  const auto ints = [](const std::vector<std::int32_t> &values) {
    made_array out{{}, dtype::int32, {values.size()}, {}};
    const auto bytes = std::as_bytes(std::span(values));
    out.bytes.assign(bytes.begin(), bytes.end());
    return out;
  };
  std::vector<std::int32_t> counts(node.ids.size());
  std::vector<std::int32_t> ids;
  for (auto &count : counts) {
    count = static_cast<std::int32_t>(chance(0.3) ? 0 : pick(1, 4));
    for (std::int32_t i = 0; i < count; ++i)
      ids.push_back(static_cast<std::int32_t>(pick(0, 150'000)));
  }
  node.kept_counts = ints(counts);
  node.kept_ids = ints(ids);
}

made_node bin_maker::node(std::size_t index, const features &has) {
  made_node out;
  out.parent = index == 0 ? -1 : static_cast<std::int32_t>(pick(0, index - 1));
  if (chance(0.05))
    out.parent = -1; // another root
  out.sampled = chance(0.5);
  const auto n = chance(0.1) ? 0 : pick(1, chance(0.2) ? 60 : 9);
  for (std::size_t i = 0; i < n; ++i) {
    out.ids.push_back(static_cast<std::int32_t>(pick(0, 150'000)));
    out.mask.push_back(out.sampled ? chance(0.9) : chance(0.05));
  }
  const auto k = count_true(out.mask);
  out.logprobs = values(k, 0.1);
  if (has.experts && (n > 0 || chance(0.5)))
    out.experts = array_of("", has.expert_type, {n, 2, 3}, random_);
  if (has.images && chance(0.3))
    add_images(out);
  if (has.kept_tokens && chance(0.5))
    add_kept_tokens(out);
  if (!has.optional_streams)
    return out;
  const double zeros = chance(0.5) ? 0.3 : 0;
  if (chance(0.6))
    out.advantages = values(k, zeros);
  if (chance(0.4))
    out.ref_logprobs = values(k, zeros);
  if (chance(0.4))
    out.rl = values(n, chance(0.2) ? 1 : 0.3);
  if (chance(0.4))
    out.ce = values(n, chance(0.2) ? 1 : 0.3);
  if (chance(0.4))
    out.ref_kl = values(n, chance(0.2) ? 1 : 0.3);
  return out;
}

wire::StreamSpec bin_maker::spec() {
  const auto rule = static_cast<wire::StreamRule>(pick(0, 4));
  return wire::StreamSpec(rule, chance(0.1) ? 0.0F : value());
}

sample_source bin_maker::sample(const made_trace &trace, const branch &path) {
  sample_source out;
  out.nodes = trace.views;
  out.path = &path;
  out.tokens = static_cast<std::uint32_t>(path.tokens);
  if (chance(0.4))
    out.tokens = static_cast<std::uint32_t>(pick(1, out.tokens));
  std::size_t images = 0;
  for (auto i : path.nodes)
    for (const auto &tensor : trace.views[i].tensors)
      images += tensor.name == "image_grid_thw" ? tensor.rows() : 0;
  out.images = static_cast<std::uint32_t>(out.tokens < path.tokens ? pick(0, images) : images);
  out.advantage_rule = chance(0.5) ? wire::AdvantageRule::Constant : wire::AdvantageRule::Nodes;
  out.advantage = chance(0.3) ? 0.0F : value();
  out.rl = spec();
  out.ce = spec();
  out.ref_kl = spec();
  out.prune_rl = chance(0.5);
  out.temperature = static_cast<float>(pick(1, 8)) / 4.0F;
  out.env = env_names[pick(0, env_names.size() - 1)];
  out.origin = wire::Origin(pick(0, 1000), 1, 2, 3, 0);
  return out;
}

void bin_maker::add_trace(made_bin &out, const features &has) {
  auto &trace = out.traces.emplace_back();
  const auto nodes = pick(1, 12);
  for (std::size_t i = 0; i < nodes; ++i)
    trace.nodes.push_back(node(i, has));
  trace.finish();
  for (const auto &path : trace.graph.trainable)
    out.plan.samples.push_back(sample(trace, path));
}

void bin_maker::fill(made_bin &out) {
  const features has{.experts = chance(0.3),
                     .expert_type = chance(0.5) ? dtype::uint8 : dtype::int16,
                     .images = chance(0.3),
                     .kept_tokens = chance(0.4),
                     .optional_streams = chance(0.7)};
  out.plan.step = pick(1, 1000);
  out.plan.rank = static_cast<std::uint32_t>(pick(0, 7));
  out.plan.index = static_cast<std::uint32_t>(pick(0, 9));
  out.plan.dummy = chance(0.15);
  out.plan.padding = chance(0.3) ? 0 : static_cast<std::uint32_t>(pick(1, 40));
  const auto traces = pick(1, 4);
  for (std::size_t i = 0; i < traces || out.plan.samples.empty(); ++i)
    add_trace(out, has);
}

} // namespace millrace::test
