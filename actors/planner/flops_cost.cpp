// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/flops_cost.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/file.hpp"
#include "runtime/json.hpp"

namespace millrace {

namespace {

constexpr std::int64_t most_layers = 10'000;
constexpr std::int64_t most_heads = 65'536;
constexpr std::int64_t most_width = 1 << 24; ///< of any vector: hidden, head, intermediate
constexpr std::int64_t most_ids = 2'147'483'647;
constexpr std::int64_t most_experts = 1 << 20;

/// Products of two widths, heads and layers pass 64 bits before the sum is checked.
__extension__ typedef __int128 flops; // an alias declaration takes no __extension__

/// Reads the fields of a config and keeps the first failure: after it every field reads as absent,
/// or as 1 where it must be there.
class field_source {
public:
  explicit field_source(json::value root) : root_(root) {}

  bool ok() const noexcept { return !failure_; }
  error take_failure() && { return std::move(*failure_); }

  void refuse(std::string text) {
    if (!failure_)
      failure_ = error{errc::bad_config, std::move(text)};
  }

  /// An integer in [least, most]; nothing if it is absent or null.
  std::optional<std::int64_t> find(std::string_view name, std::int64_t least, std::int64_t most) {
    const auto found = root_.find<std::int64_t>(name, json::nulls::as_absent);
    if (!found)
      refuse(found.error().message);
    if (!ok() || !*found)
      return std::nullopt;
    if (**found >= least && **found <= most)
      return *found;
    refuse(fmt::format("{}: {}, it must be from {} to {}", name, **found, least, most));
    return std::nullopt;
  }

  std::int64_t get(std::string_view name, std::int64_t least, std::int64_t most) {
    const auto found = find(name, least, most);
    if (!found)
      refuse(fmt::format("{}: it is missing", name));
    return found.value_or(1);
  }

  std::string text(std::string_view name) {
    const auto found = root_.find<std::string>(name, json::nulls::as_absent);
    if (!found)
      refuse(found.error().message);
    return ok() && *found ? **found : std::string();
  }

  /// It is there, and not null.
  bool has(std::string_view name) {
    const auto found = root_.find<json::value>(name, json::nulls::as_absent);
    if (!found)
      refuse(found.error().message);
    return found && *found;
  }

  /// The elements of a list that may be absent.
  std::vector<json::value> list(std::string_view name) {
    const auto found = root_.find<json::value>(name, json::nulls::as_absent);
    if (found && !*found)
      return {};
    const auto items = found ? (*found)->items() : tl::unexpected(found.error());
    if (!items)
      refuse(items.error().message);
    return items ? *items : std::vector<json::value>();
  }

private:
  json::value root_;
  std::optional<error> failure_;
};

/// FLOPs of one layer's attention: for each token, and for each pair of tokens.
struct attention_cost {
  flops token = 0;
  flops pair = 0;
};

/// Products of a vector with a matrix of in x out.
flops product(flops in, flops out) { return 2 * in * out; }

/// Keys and values of all heads are made from one short vector for each token.
attention_cost latent_attention(field_source &in, flops hidden, flops heads) {
  const flops kv_rank = in.get("kv_lora_rank", 1, most_width);
  const flops plain = in.get("qk_nope_head_dim", 1, most_width);
  const flops rotary = in.get("qk_rope_head_dim", 0, most_width);
  const flops value = in.get("v_head_dim", 1, most_width);
  const auto q_rank = in.find("q_lora_rank", 1, most_width);
  const auto query = heads * (plain + rotary);
  attention_cost out;
  out.token = q_rank ? product(hidden, *q_rank) + product(*q_rank, query) : product(hidden, query);
  out.token += product(hidden, kv_rank + rotary) + product(kv_rank, heads * (plain + value)) +
               product(heads * value, hidden);
  out.pair = 2 * heads * (plain + rotary + value);
  return out;
}

attention_cost grouped_attention(field_source &in, std::int64_t hidden, std::int64_t heads) {
  const auto kv_heads = in.find("num_key_value_heads", 1, most_heads).value_or(heads);
  if (heads % kv_heads != 0)
    in.refuse(fmt::format("num_key_value_heads: {} does not divide num_attention_heads = {}",
                          kv_heads, heads));
  const auto given = in.find("head_dim", 1, most_width);
  if (!given && hidden % heads != 0)
    in.refuse(fmt::format("head_dim: it is missing, and num_attention_heads = {} does not divide "
                          "hidden_size = {}",
                          heads, hidden));
  const flops width = given.value_or(hidden / heads);
  return {.token = product(hidden, width * heads) + 2 * product(hidden, width * kv_heads) +
                   product(width * heads, hidden),
          .pair = 4 * width * heads};
}

/// Sliding windows are counted as if they saw everything. Layers without attention cannot be.
void check_layer_types(field_source &in) {
  for (auto name : {"attn_layer_period", "attn_type_list", "full_attention_interval",
                    "hybrid_override_pattern", "layers_block_type", "linear_attn_config"})
    if (in.has(name))
      in.refuse(fmt::format("{}: some layers have no full attention: set cost.linear and "
                            "cost.quadratic by hand",
                            name));
  for (const auto &item : in.list("layer_types")) {
    const auto type = item.as<std::string>();
    if (!type)
      in.refuse(type.error().message);
    else if (*type != "full_attention" && *type != "sliding_attention")
      in.refuse(fmt::format("{}: neither full_attention nor sliding_attention: set cost.linear and "
                            "cost.quadratic by hand",
                            item.path()));
  }
}

attention_cost read_attention(field_source &in, std::int64_t hidden) {
  const auto heads = in.get("num_attention_heads", 1, most_heads);
  check_layer_types(in);
  return in.find("kv_lora_rank", 0, most_width) ? latent_attention(in, hidden, heads)
                                                : grouped_attention(in, hidden, heads);
}

/// Multiply-adds of a feed-forward block of one width: two matrices, three if it is gated.
class feed_forward {
public:
  feed_forward(field_source &in, flops hidden) : hidden_(hidden) {
    static constexpr std::array<std::string_view, 7> ungated{
        "apertus", "arcee", "gpt_neox", "nemotron", "persimmon", "phi", "starcoder2"};
    matrices_ = std::ranges::count(ungated, in.text("model_type")) != 0 ? 2 : 3;
  }
  flops of(flops width) const { return matrices_ * product(hidden_, width); }

private:
  flops hidden_;
  flops matrices_;
};

/// Layers that have experts, of all.
std::int64_t count_expert_layers(field_source &in, std::int64_t layers) {
  const auto first = in.find("first_k_dense_replace", 0, layers).value_or(0);
  const auto frequency = in.find("moe_layer_freq", 1, most_layers).value_or(1);
  const auto step = in.find("decoder_sparse_step", 1, most_layers).value_or(1);
  std::vector<bool> dense(static_cast<std::size_t>(layers), false);
  for (const auto &item : in.list("mlp_only_layers")) {
    const auto layer = item.as<std::int64_t>();
    if (!layer)
      in.refuse(layer.error().message);
    else if (*layer < 0 || *layer >= layers)
      in.refuse(fmt::format("{}: {}, there are {} layers", item.path(), *layer, layers));
    else
      dense[static_cast<std::size_t>(*layer)] = true;
  }
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < layers; ++i)
    if (i >= first && i % frequency == 0 && (i + 1) % step == 0 &&
        !dense[static_cast<std::size_t>(i)])
      ++count;
  return count;
}

std::int64_t read_experts(field_source &in) {
  for (auto name : {"n_routed_experts", "num_experts", "num_local_experts"})
    if (const auto found = in.find(name, 0, most_experts))
      return *found;
  return 0;
}

/// Router, the experts that a token goes to, and those that all go to.
flops expert_layer(field_source &in, flops hidden, std::int64_t experts,
                   const feed_forward &block) {
  const auto chosen = in.get("num_experts_per_tok", 1, experts);
  const auto given = in.find("moe_intermediate_size", 1, most_width);
  const flops width = given ? *given : in.get("intermediate_size", 1, most_width);
  flops sum = product(hidden, experts) + chosen * block.of(width);
  if (const auto shared = in.find("n_shared_experts", 0, most_experts))
    sum += block.of(*shared * width);
  if (const auto shared = in.find("shared_expert_intermediate_size", 0, most_width);
      shared && *shared > 0)
    sum += block.of(*shared) + product(hidden, 1); // and its gate
  return sum;
}

result<std::int64_t> fits_int64(flops value) {
  if (value > INT64_MAX)
    return fail(errc::bad_config, "its dimensions make a cost beyond 64 bits");
  return static_cast<std::int64_t>(value);
}

} // namespace

result<cost_config> flops_cost(std::string_view config_json) {
  json::document document;
  const auto root = document.parse(config_json);
  if (!root)
    return tl::unexpected(root.error());
  field_source in(*root);
  const auto layers = in.get("num_hidden_layers", 1, most_layers);
  const auto hidden = in.get("hidden_size", 1, most_width);
  const auto attention = read_attention(in, hidden);
  const feed_forward block(in, hidden);
  const auto experts = read_experts(in);
  const auto with_experts = experts == 0 ? 0 : count_expert_layers(in, layers);
  // A token attends to itself and to those before it: n * (n + 1) / 2 pairs.
  const auto half_pair = attention.pair / 2;
  auto linear =
      layers * (attention.token + half_pair) + product(hidden, in.get("vocab_size", 1, most_ids));
  if (with_experts > 0)
    linear += with_experts * expert_layer(in, hidden, experts, block);
  if (with_experts < layers)
    linear += (layers - with_experts) * block.of(in.get("intermediate_size", 1, most_width));
  if (!in.ok())
    return tl::unexpected(std::move(in).take_failure());
  const auto tokens = fits_int64(linear);
  const auto pairs = fits_int64(layers * half_pair);
  if (!tokens || !pairs)
    return tl::unexpected(tokens ? pairs.error() : tokens.error());
  return cost_config{.linear = *tokens, .quadratic = *pairs};
}

result<cost_config> read_flops_cost(const std::filesystem::path &file) {
  constexpr std::size_t largest = std::size_t{1} << 20;
  const auto text = read_file(file, largest);
  if (!text)
    return tl::unexpected(text.error());
  auto cost = flops_cost(*text);
  if (!cost)
    return with_context(std::move(cost).error(), file.string());
  return cost;
}

} // namespace millrace
