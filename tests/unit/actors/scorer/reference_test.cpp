// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/reference.hpp"

#include <functional>
#include <limits>

#include <boost/test/unit_test.hpp>

#include "actors/scorer/annotate.hpp"
#include "tests/support/reference.hpp"

using namespace millrace;
using namespace millrace::test;
using floats = std::vector<float>;

namespace {

frame_data plain(const std::string &id) {
  return episode_of(id, 1, {prompt(-1, 2), turn(0, {0, 1, 1})});
}

std::vector<frame_data> plain_group(std::size_t episodes) {
  std::vector<frame_data> out;
  for (std::size_t i = 0; i < episodes; ++i)
    out.push_back(plain(std::to_string(i)));
  return out;
}

std::string problem_of(const std::vector<frame_data> &episodes,
                       const std::function<void(reference_logprobs &)> &change) {
  const auto header = header_of(episodes);
  given_reference given(header, episodes);
  change(given.values);
  env_config config;
  config.algorithm = "opd";
  const auto found = annotate(header, config, {.reference = &given.values});
  return found ? "" : found.error().message;
}

bool says(const std::string &text, std::string_view piece) {
  return text.find(piece) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_SUITE(references)

BOOST_AUTO_TEST_CASE(a_node_takes_the_values_at_its_trainable_tokens) {
  const std::vector episodes{plain("a")};
  const auto header = header_of(episodes);
  const given_reference given(header, episodes);
  const auto found = assign_reference(*header, given.values);
  BOOST_REQUIRE_MESSAGE(found, found.error().message);
  BOOST_TEST(found->at(0).values == (floats{-4, -5}));
}

BOOST_AUTO_TEST_CASE(of_a_shared_turn_the_first_branch_wins) {
  const std::vector episodes{
      episode_of("a", 1, {prompt(-1, 1), turn(0, {1}), turn(1, {1}), prompt(1, 2), turn(3, {1})})};
  const auto header = header_of(episodes);
  given_reference given(header, episodes);
  given.values.traces[0].branches[1][1] = 99; // the shared turn, in its second branch
  const auto found = assign_reference(*header, given.values);
  BOOST_REQUIRE_MESSAGE(found, found.error().message);
  BOOST_TEST(found->at(0).values == (floats{-2, -3, -5}));
}

BOOST_AUTO_TEST_CASE(nodes_that_came_with_theirs_keep_them) {
  auto episode = episode_of("a", 1, {prompt(-1, 2), turn(0, {1, 1}), turn(1, {1})});
  episode.nodes[1].reference_logprobs = floats{-7, -8};
  const std::vector episodes{episode};
  const auto header = header_of(episodes);
  BOOST_TEST((traces_without_reference(*header) == std::vector<trace_place>{{0, 0}}));
  const given_reference given(header, episodes);
  BOOST_TEST(assign_reference(*header, given.values)->at(0).values == floats{-5});
}

BOOST_AUTO_TEST_CASE(only_eligible_traces_that_lack_some_are_asked_for) {
  auto has = plain("has");
  has.nodes[1].reference_logprobs = floats{-1, -1};
  auto failed = plain("failed");
  failed.finish->status = wire::EpisodeStatus::Errored;
  auto two = plain("two");
  add_trace(two, 0, {turn(-1, {1})});
  const auto header = header_of({has, failed, two});
  BOOST_TEST((traces_without_reference(*header) == std::vector<trace_place>{{2, 0}, {2, 1}}));
}

BOOST_AUTO_TEST_CASE(a_group_that_came_with_all_of_them_needs_no_answer) {
  auto has = plain("has");
  has.nodes[1].reference_logprobs = floats{-1, -1};
  env_config config;
  config.algorithm = "opd";
  BOOST_TEST(annotate(header_of({has}), config, {}).has_value());
}

BOOST_AUTO_TEST_CASE(the_values_stand_in_the_annotations_of_their_trace) {
  const auto episodes = plain_group(2);
  const auto header = header_of(episodes);
  const given_reference given(header, episodes);
  env_config config;
  config.algorithm = "opsd";
  const auto found = annotate(header, config, {.reference = &given.values});
  BOOST_REQUIRE_MESSAGE(found, found.error().message);
  const auto annotations = parse<wire::GroupAnnotations>(found->annotations).value();
  for (const auto *trace : *annotations->traces()) {
    const auto values = span_of(trace->reference_logprobs());
    BOOST_TEST(floats(values.begin(), values.end()) == (floats{-4, -5}));
  }
}

BOOST_AUTO_TEST_CASE(an_answer_for_another_number_of_traces_is_refused_with_both_numbers) {
  for (const std::size_t answers : {0U, 1U, 7U, 9U}) {
    const auto problem = problem_of(plain_group(8), [answers](reference_logprobs &given) {
      given.traces.resize(answers, given.traces.front());
    });
    BOOST_TEST(says(problem, fmt::format("answers for {} traces, 8 were asked for", answers)),
               problem);
  }
}

BOOST_AUTO_TEST_CASE(no_answer_at_all_is_refused_too) {
  env_config config;
  config.algorithm = "opd";
  const auto found = annotate(header_of(plain_group(3)), config, {});
  BOOST_REQUIRE(!found);
  BOOST_TEST(says(found.error().message, "answers for 0 traces, 3 were asked for"));
}

BOOST_AUTO_TEST_CASE(an_answer_for_another_trace_is_refused) {
  const auto problem = problem_of(plain_group(2), [](reference_logprobs &given) {
    std::swap(given.traces[0], given.traces[1]);
  });
  BOOST_TEST(says(problem, "answer 0 of the reference policy is for trace 0 of episode 1"),
             problem);
}

BOOST_AUTO_TEST_CASE(another_number_of_branches_or_tokens_is_refused) {
  const auto branches = problem_of(
      plain_group(1), [](reference_logprobs &given) { given.traces[0].branches.emplace_back(); });
  BOOST_TEST(says(branches, "2 lists of reference logprobs for 1 trainable branches"), branches);
  const auto tokens = problem_of(
      plain_group(1), [](reference_logprobs &given) { given.traces[0].branches[0].pop_back(); });
  BOOST_TEST(says(tokens, "episode '0', trace 0"), tokens);
  BOOST_TEST(says(tokens, "4 reference logprobs for 5 tokens"), tokens);
}

BOOST_AUTO_TEST_CASE(a_value_that_is_needed_and_is_no_number_is_refused) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    const auto problem = problem_of(
        plain_group(1), [bad](reference_logprobs &given) { given.traces[0].branches[0][4] = bad; });
    BOOST_TEST(says(problem, "node 1: the reference logprob of its trainable token 1"), problem);
    const auto unneeded = problem_of(
        plain_group(1), [bad](reference_logprobs &given) { given.traces[0].branches[0][2] = bad; });
    BOOST_TEST(unneeded == "");
  }
}

BOOST_AUTO_TEST_CASE(a_trainable_first_token_without_a_value_is_refused) {
  const auto problem = problem_of({episode_of("a", 1, {turn(-1, {1, 1})})}, [](auto &) {});
  BOOST_TEST(says(problem, "node 0: the reference logprob of its trainable token 0 is nan"),
             problem);
}

BOOST_AUTO_TEST_CASE(nodes_of_another_episode_are_refused) {
  const auto other = sealed_one(episode_of("b", 1, {prompt(-1, 2), turn(0, {1, 1, 1})}));
  const auto problem = problem_of(plain_group(1), [&other](reference_logprobs &given) {
    given.traces[0].nodes = other.nodes(0);
  });
  BOOST_TEST(says(problem, "node 1 has 3 tokens, 3 of them trainable; its header says 3 and 2"),
             problem);
}

BOOST_AUTO_TEST_CASE(ref_kl_without_reference_logprobs_is_an_error_that_names_the_sample) {
  env_config config;
  config.action_loss_type = action_loss::ref_kl;
  const auto found = annotate(header_of({plain("a"), plain("b")}), config, {});
  BOOST_REQUIRE(!found);
  BOOST_TEST(says(found.error().message, "episode 'a', trace 0, branch with leaf 1: its ref_kl"),
             found.error().message);
  auto with = plain("a");
  with.nodes[1].reference_logprobs = floats{-1, -1};
  BOOST_TEST(annotate(header_of({with}), config, {}).has_value());
}

BOOST_AUTO_TEST_CASE(ref_kl_weights_of_nodes_need_reference_logprobs_as_well) {
  auto episode = plain("a");
  episode.nodes[1].ref_kl_weights = floats{0, 1, 0};
  BOOST_TEST(!annotate(header_of({episode, plain("b")}), {}, {}));
  episode.nodes[1].reference_logprobs = floats{-1, -1};
  BOOST_TEST(annotate(header_of({episode, plain("b")}), {}, {}).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
