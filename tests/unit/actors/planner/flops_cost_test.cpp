// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/flops_cost.hpp"

#include <map>
#include <string>

#include <boost/test/unit_test.hpp>

#include "runtime/file.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace millrace;
using namespace millrace::test;

namespace {

using fields = std::map<std::string, std::string>;

/// Fields as JSON values, with some of them changed; an empty one is left out.
std::string config_of(fields all, const fields &changed = {}) {
  for (const auto &[name, value] : changed)
    all[name] = value;
  std::string out;
  for (const auto &[name, value] : all)
    if (!value.empty())
      out += fmt::format("{}\"{}\": {}", out.empty() ? "" : ", ", name, value);
  return "{" + out + "}";
}

cost_config cost_of_model(const fields &all, const fields &changed = {}) {
  const auto cost = flops_cost(config_of(all, changed));
  BOOST_REQUIRE_MESSAGE(cost, cost.error().message);
  return *cost;
}

std::string refused(const fields &all, const fields &changed) {
  const auto cost = flops_cost(config_of(all, changed));
  BOOST_REQUIRE(!cost);
  BOOST_TEST(cost.error().message.find('\n') == std::string::npos);
  return cost.error().message;
}

// Public dimensions of Llama 2 7B, Qwen2.5 7B, Mixtral 8x7B, Qwen3 30B-A3B and DeepSeek-V3.
const fields dense{{"model_type", "\"llama\""},    {"hidden_size", "4096"},
                   {"num_hidden_layers", "32"},    {"num_attention_heads", "32"},
                   {"intermediate_size", "11008"}, {"vocab_size", "32000"}};
const fields grouped{{"model_type", "\"qwen2\""},  {"hidden_size", "3584"},
                     {"num_hidden_layers", "28"},  {"num_attention_heads", "28"},
                     {"num_key_value_heads", "4"}, {"intermediate_size", "18944"},
                     {"vocab_size", "152064"}};
const fields mixtral{
    {"model_type", "\"mixtral\""}, {"hidden_size", "4096"},      {"num_hidden_layers", "32"},
    {"num_attention_heads", "32"}, {"num_key_value_heads", "8"}, {"intermediate_size", "14336"},
    {"num_local_experts", "8"},    {"num_experts_per_tok", "2"}, {"vocab_size", "32000"}};
const fields experts{
    {"model_type", "\"qwen3_moe\""}, {"hidden_size", "2048"},          {"num_hidden_layers", "48"},
    {"num_attention_heads", "32"},   {"num_key_value_heads", "4"},     {"head_dim", "128"},
    {"intermediate_size", "6144"},   {"moe_intermediate_size", "768"}, {"num_experts", "128"},
    {"num_experts_per_tok", "8"},    {"decoder_sparse_step", "1"},     {"mlp_only_layers", "[]"},
    {"vocab_size", "151936"}};
const fields latent{{"model_type", "\"deepseek_v3\""},
                    {"hidden_size", "7168"},
                    {"num_hidden_layers", "61"},
                    {"num_attention_heads", "128"},
                    {"num_key_value_heads", "128"},
                    {"intermediate_size", "18432"},
                    {"moe_intermediate_size", "2048"},
                    {"n_routed_experts", "256"},
                    {"num_experts_per_tok", "8"},
                    {"n_shared_experts", "1"},
                    {"first_k_dense_replace", "3"},
                    {"moe_layer_freq", "1"},
                    {"kv_lora_rank", "512"},
                    {"q_lora_rank", "1536"},
                    {"qk_nope_head_dim", "128"},
                    {"qk_rope_head_dim", "64"},
                    {"v_head_dim", "128"},
                    {"vocab_size", "129280"}};

} // namespace

BOOST_AUTO_TEST_SUITE(flops_cost_suite)

BOOST_AUTO_TEST_CASE(a_dense_model_costs_its_matrices_and_its_pairs) {
  // A layer: q, k, v, o 4 * 2 * 4096 * 4096 = 134,217,728; three matrices 6 * 4096 * 11008 =
  // 270,532,608; a token with itself 32 * (128 + 128) = 8,192. Output 2 * 4096 * 32000 =
  // 262,144,000. Pairs: 32 layers of 8,192.
  const auto cost = cost_of_model(dense);
  BOOST_TEST(cost.linear == 32 * (134'217'728 + 270'532'608 + 8'192LL) + 262'144'000);
  BOOST_TEST(cost.linear == 13'214'416'896);
  BOOST_TEST(cost.quadratic == 262'144);
}

BOOST_AUTO_TEST_CASE(grouped_queries_save_projections_and_no_pairs) {
  // A layer: q and o 2 * 2 * 3584 * 3584 = 51,380,224; k and v 2 * 2 * 3584 * 512 = 7,340,032;
  // 6 * 3584 * 18944 = 407,371,776; itself 28 * 256 = 7,168. Output 2 * 3584 * 152064.
  const auto cost = cost_of_model(grouped);
  BOOST_TEST(cost.linear == 28 * (51'380'224 + 7'340'032 + 407'371'776 + 7'168LL) + 1'089'994'752);
  BOOST_TEST(cost.quadratic == 28 * 7'168);
}

BOOST_AUTO_TEST_CASE(experts_cost_as_many_as_a_token_goes_to_and_the_router) {
  // A layer: q and o 2 * 2 * 4096 * 4096 = 67,108,864; k and v 2 * 2 * 4096 * 1024 = 16,777,216;
  // router 2 * 4096 * 8 = 65,536; two of 6 * 4096 * 14336 = 352,321,536; itself 8,192.
  const auto cost = cost_of_model(mixtral);
  BOOST_TEST(cost.linear ==
             32 * (67'108'864 + 16'777'216 + 65'536 + 2 * 352'321'536LL + 8'192) + 262'144'000);
  BOOST_TEST(cost.quadratic == 262'144);
}

BOOST_AUTO_TEST_CASE(heads_may_be_wider_than_the_model) {
  // A layer: q and o 2 * 2 * 2048 * 4096 = 33,554,432; k and v 2 * 2 * 2048 * 512 = 4,194,304;
  // router 2 * 2048 * 128 = 524,288; eight of 6 * 2048 * 768 = 9,437,184; itself 32 * 256.
  // Output 2 * 2048 * 151936 = 622,329,856.
  const auto cost = cost_of_model(experts);
  BOOST_TEST(cost.linear ==
             48 * (33'554'432 + 4'194'304 + 524'288 + 8 * 9'437'184LL + 8'192) + 622'329'856);
  BOOST_TEST(cost.quadratic == 48 * 8'192);
}

BOOST_AUTO_TEST_CASE(latent_attention_costs_its_short_vectors_and_the_wider_keys) {
  // Attention of a layer: query 2 * 7168 * 1536 + 2 * 1536 * 128 * 192 = 22,020,096 + 75,497,472;
  // keys and values 2 * 7168 * 576 + 2 * 512 * 128 * 256 = 8,257,536 + 33,554,432;
  // output 2 * 128 * 128 * 7168 = 234,881,024; itself 128 * (192 + 128) = 40,960.
  // 3 dense layers of 6 * 7168 * 18432 = 792,723,456; 58 of router 2 * 7168 * 256 = 3,670,016 and
  // 8 + 1 experts of 6 * 7168 * 2048 = 88,080,384. Output 2 * 7168 * 129280 = 1,853,358,080.
  const auto cost = cost_of_model(latent);
  const auto attention = 22'020'096 + 75'497'472 + 8'257'536 + 33'554'432 + 234'881'024 + 40'960LL;
  BOOST_TEST(cost.linear == 61 * attention + 3 * 792'723'456LL +
                                58 * (3'670'016 + 9 * 88'080'384LL) + 1'853'358'080);
  BOOST_TEST(cost.quadratic == 61 * 40'960);
}

BOOST_AUTO_TEST_CASE(queries_without_a_short_vector_are_one_product) {
  // 2 * 7168 * 128 * 192 in place of 22,020,096 + 75,497,472.
  const auto with = cost_of_model(latent).linear;
  const auto without = cost_of_model(latent, {{"q_lora_rank", "null"}}).linear;
  BOOST_TEST(without - with == 61 * (352'321'536LL - 22'020'096 - 75'497'472));
}

BOOST_AUTO_TEST_CASE(dense_layers_among_experts_are_those_that_the_config_names) {
  const auto all = cost_of_model(experts).linear;
  // One layer less with experts: a dense block of 6 * 2048 * 6144 in its place.
  const std::int64_t difference = 75'497'472LL - (524'288 + 8 * 9'437'184LL);
  BOOST_TEST(cost_of_model(experts, {{"mlp_only_layers", "[47]"}}).linear == all + difference);
  BOOST_TEST(cost_of_model(experts, {{"mlp_only_layers", "[0, 5, 5]"}}).linear ==
             all + 2 * difference);
  BOOST_TEST(cost_of_model(experts, {{"decoder_sparse_step", "2"}}).linear ==
             all + 24 * difference);
  BOOST_TEST(cost_of_model(experts, {{"num_experts", "0"}}).linear == all + 48 * difference);
}

BOOST_AUTO_TEST_CASE(a_shared_expert_of_its_own_width_has_a_gate) {
  const auto all = cost_of_model(experts).linear;
  BOOST_TEST(cost_of_model(experts, {{"shared_expert_intermediate_size", "1024"}}).linear ==
             all + 48 * (6 * 2048 * 1024 + 2 * 2048));
}

BOOST_AUTO_TEST_CASE(a_block_without_a_gate_has_two_matrices) {
  const auto gated = cost_of_model(dense).linear;
  BOOST_TEST(gated - cost_of_model(dense, {{"model_type", "\"starcoder2\""}}).linear ==
             32 * 2 * 4096LL * 11008);
  BOOST_TEST(gated - cost_of_model(dense, {{"model_type", "\"arcee\""}}).linear ==
             32 * 2 * 4096LL * 11008);
}

BOOST_AUTO_TEST_CASE(a_missing_field_is_named) {
  for (const auto *model : {&dense, &grouped, &mixtral, &experts, &latent})
    for (auto name : {"hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"})
      BOOST_TEST(refused(*model, {{name, ""}}) == fmt::format("{}: it is missing", name));
  for (auto name : {"qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"})
    BOOST_TEST(refused(latent, {{name, "null"}}) == fmt::format("{}: it is missing", name));
  BOOST_TEST(refused(dense, {{"intermediate_size", ""}}) == "intermediate_size: it is missing");
  BOOST_TEST(refused(mixtral, {{"intermediate_size", ""}}) == "intermediate_size: it is missing");
  BOOST_TEST(refused(experts, {{"num_experts_per_tok", ""}}) ==
             "num_experts_per_tok: it is missing");
}

BOOST_AUTO_TEST_CASE(an_absurd_field_is_named) {
  for (const auto &[name, value] : latent)
    for (const auto *absurd : {"-1", "1e3", "\"many\"", "[]", "9223372036854775807", "1.5"})
      if (name != "model_type" && name != "num_key_value_heads")
        BOOST_TEST(refused(latent, {{name, absurd}}).starts_with(name + ": "), name);
  BOOST_TEST(refused(grouped, {{"num_key_value_heads", "5"}}) ==
             "num_key_value_heads: 5 does not divide num_attention_heads = 28");
  BOOST_TEST(refused(dense, {{"num_attention_heads", "33"}})
                 .starts_with("head_dim: it is missing, and num_attention_heads = 33"));
  BOOST_TEST(refused(experts, {{"num_experts_per_tok", "129"}}) ==
             "num_experts_per_tok: 129, it must be from 1 to 128");
  BOOST_TEST(refused(experts, {{"mlp_only_layers", "[48]"}}).starts_with("mlp_only_layers[0]: 48"));
  BOOST_TEST(refused(experts, {{"mlp_only_layers", "3"}}).starts_with("mlp_only_layers: "));
  BOOST_TEST(refused(experts, {{"layer_types", "[\"full_attention\", \"linear_attention\"]"}})
                 .starts_with("layer_types[1]: "));
  for (auto name : {"full_attention_interval", "attn_layer_period"})
    BOOST_TEST(refused(experts, {{name, "4"}})
                   .starts_with(fmt::format("{}: some layers have no full attention", name)));
}

BOOST_AUTO_TEST_CASE(a_cost_beyond_64_bits_is_refused) {
  const std::string wide = "16777216";
  BOOST_TEST(refused(dense, {{"hidden_size", wide},
                             {"num_hidden_layers", "10000"},
                             {"num_attention_heads", "65536"},
                             {"head_dim", wide}})
                 .ends_with("beyond 64 bits"));
}

BOOST_AUTO_TEST_CASE(what_is_not_an_object_is_refused) {
  for (auto text : {"", "[]", "3", "{", "null", "{\"hidden_size\": NaN}"})
    BOOST_TEST(!flops_cost(text), text);
}

BOOST_AUTO_TEST_CASE(a_file_is_named_in_its_errors) {
  const temporary_folder folder;
  const auto file = folder.path() / "config.json";
  BOOST_REQUIRE(write_file_atomically(file, config_of(dense)));
  BOOST_TEST(read_flops_cost(file)->linear == 13'214'416'896);
  BOOST_REQUIRE(write_file_atomically(file, config_of(dense, {{"vocab_size", ""}})));
  BOOST_TEST(read_flops_cost(file).error().message ==
             file.string() + ": vocab_size: it is missing");
  BOOST_TEST(!read_flops_cost(folder.path() / "none.json"));
}

BOOST_AUTO_TEST_SUITE_END()
