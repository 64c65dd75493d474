// SPDX-License-Identifier: Apache-2.0
// What scorers say of tokens that they never ship: reference logprobs and echo weights.
#include "actors/packer/bin_sources.hpp"

#include <boost/test/unit_test.hpp>

#include "actors/packer/micro_batch.hpp"
#include "actors/scorer/annotate.hpp"
#include "actors/trainer/tensors.hpp"
#include "tests/support/reference.hpp"

using namespace millrace;
using namespace millrace::test;
using floats = std::vector<float>;

namespace {

/// A group of one episode and a bin of these branches of it, cut to `tokens` each.
struct fixture {
  fixture(const frame_data &episode, const env_config &config,
          const std::vector<std::pair<std::uint32_t, std::uint32_t>> &branches)
      : header(header_of({episode})), given(header, {episode}) {
    auto answer = annotate(header, config, {.reference = &given.values});
    BOOST_REQUIRE_MESSAGE(answer, answer.error().message);
    groups.push_back({parse<wire::GroupAnnotations>(answer->annotations).value(), {}});
    groups[0].episodes.emplace(0, sealed_one(episode));
    std::vector<wire::Piece> pieces;
    for (const auto &[branch, tokens] : branches)
      pieces.emplace_back(0, 0, 0, branch, tokens, 0);
    flatbuffers::FlatBufferBuilder builder;
    const auto pieces_at = builder.CreateVectorOfStructs(pieces);
    wire::BinPlanBuilder out(builder);
    out.add_pieces(pieces_at);
    plan = finish_body<wire::BinPlan>(builder, out.Finish());
  }

  result<bin_sources> sources() const {
    return make_bin_sources(*parse<wire::BinPlan>(plan).value(), groups);
  }

  micro_batch_tensors tensors() const {
    const auto made = sources();
    BOOST_REQUIRE_MESSAGE(made, made.error().message);
    auto parts = gather(made->plan);
    BOOST_REQUIRE_MESSAGE(parts, parts.error().message);
    micro_batch_tensors out;
    widen(micro_batch::parse(std::move(*parts)).value(), out);
    return out;
  }

  body<wire::GroupHeader> header;
  given_reference given;
  std::vector<fetched_group> groups;
  frame plan;
};

env_config opd() {
  env_config out;
  out.algorithm = "opd";
  return out;
}

env_config echo() {
  env_config out;
  out.algorithm = "echo";
  out.echo.roles = {{"tool", 0.25}};
  return out;
}

node_data tool(std::int32_t parent, std::size_t tokens) {
  auto out = prompt(parent, tokens);
  out.role = "tool";
  return out;
}

floats values_of(const host_array<float> &in) { return {in.values().begin(), in.values().end()}; }

} // namespace

BOOST_AUTO_TEST_SUITE(bin_source)

BOOST_AUTO_TEST_CASE(reference_logprobs_lie_in_the_annotations_and_are_not_copied) {
  const fixture in(episode_of("a", 1, {prompt(-1, 2), turn(0, {1, 0, 1})}), opd(), {{0, 5}});
  const auto made = in.sources();
  BOOST_REQUIRE_MESSAGE(made, made.error().message);
  const auto values = *made->plan.samples[0].nodes[1].reference_logprobs;
  const auto bytes = in.groups[0].annotations.bytes().bytes();
  BOOST_TEST((std::as_bytes(values).data() >= bytes.data() &&
              std::as_bytes(values).data() + values.size_bytes() <= bytes.data() + bytes.size()));
  const auto tensors = in.tensors();
  BOOST_TEST(values_of(tensors.ref_logprobs) == (floats{0, 0, -3, 0, -5}));
  BOOST_TEST(values_of(tensors.ref_kl_weights) == (floats{0, 0, 1, 0, 1}));
  BOOST_TEST(values_of(tensors.rl_weights) == (floats{0, 0, 0, 0, 0}));
}

BOOST_AUTO_TEST_CASE(nodes_that_came_with_reference_logprobs_keep_theirs) {
  auto episode = episode_of("a", 1, {prompt(-1, 1), turn(0, {1}), turn(1, {1, 1})});
  episode.nodes[1].reference_logprobs = floats{-9};
  const fixture in(episode, opd(), {{0, 4}});
  BOOST_TEST(values_of(in.tensors().ref_logprobs) == (floats{0, -9, -3, -4}));
}

BOOST_AUTO_TEST_CASE(another_number_of_reference_logprobs_than_needed_is_refused) {
  fixture in(episode_of("a", 1, {prompt(-1, 2), turn(0, {1, 0, 1})}), opd(), {{0, 5}});
  for (const std::size_t tokens : {1U, 3U}) {
    const auto other =
        episode_of("a", 1, {prompt(-1, 2), turn(0, std::vector<std::uint8_t>(tokens, 1))});
    in.groups[0].episodes.clear();
    in.groups[0].episodes.emplace(0, sealed_one(other));
    const auto made = in.sources();
    BOOST_REQUIRE(!made);
    BOOST_TEST(made.error().message.find("episode 'a', trace 0: 2 reference logprobs") !=
                   std::string::npos,
               made.error().message);
  }
}

BOOST_AUTO_TEST_CASE(echo_weighs_kept_content_of_its_roles_below_a_turn) {
  auto answer = tool(1, 4);
  answer.is_content = {0, 1, 1, 1};
  answer.echo_mask = {1, 1, 0, 1};
  const fixture in(
      episode_of("a", 1, {tool(-1, 1), turn(0, {1}), answer, prompt(2, 1), turn(3, {1})}), echo(),
      {{0, 8}});
  const auto tensors = in.tensors();
  BOOST_TEST(values_of(tensors.ce_weights) == (floats{0, 0, 0, 0.25F, 0, 0.25F, 0, 0}));
}

BOOST_AUTO_TEST_CASE(a_cut_keeps_the_first_echo_weights) {
  const fixture in(episode_of("a", 1, {prompt(-1, 1), turn(0, {1}), tool(1, 4)}), echo(), {{0, 4}});
  BOOST_TEST(values_of(in.tensors().ce_weights) == (floats{0, 0, 0.25F, 0.25F}));
}

BOOST_AUTO_TEST_CASE(what_branches_share_is_echoed_in_the_first_of_them) {
  const fixture in(
      episode_of("a", 1,
                 {prompt(-1, 1), turn(0, {1}), tool(1, 2), turn(2, {1}), turn(2, {1}), tool(4, 1)}),
      echo(), {{0, 5}, {1, 6}});
  BOOST_TEST(values_of(in.tensors().ce_weights) ==
             (floats{0, 0, 0.25F, 0.25F, 0, 0, 0, 0, 0, 0, 0.25F}));
}

BOOST_AUTO_TEST_CASE(echo_raises_weights_that_came_with_a_node) {
  auto answer = tool(1, 3);
  answer.ce_weights = floats{0.5F, 0.125F, -1};
  answer.echo_mask = {1, 1, 0};
  const fixture in(episode_of("a", 1, {prompt(-1, 1), turn(0, {1}), answer}), echo(), {{0, 5}});
  BOOST_TEST(values_of(in.tensors().ce_weights) == (floats{0, 0, 0.5F, 0.25F, 0}));
}

BOOST_AUTO_TEST_SUITE_END()
