// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/reference_request.hpp"

#include <cmath>

#include <boost/test/unit_test.hpp>

#include "runtime/json.hpp"
#include "tests/support/groups.hpp"

using namespace millrace;
using test::episode_of;
using test::turn;

namespace {

/// A group, and the bytes of the episodes that are wanted of it.
struct fixture {
  explicit fixture(const std::vector<frame_data> &episodes) : header(test::header_of(episodes)) {
    for (const auto e : reference_episodes(*header))
      wanted.push_back(test::sealed_one(episodes[e]));
  }
  std::vector<reference_prompt> prompts(reference_kind kind = reference_kind::teacher) const {
    auto out = reference_prompts(*header, wanted, kind);
    BOOST_REQUIRE_MESSAGE(out, out.error().message);
    return std::move(*out);
  }

  body<wire::GroupHeader> header;
  std::vector<sealed_episode> wanted;
};

using ids = std::vector<std::int32_t>;

/// Two tokens of a prompt (100, 101) and two of an answer (200, 201).
frame_data plain(const std::string &id) {
  return episode_of(id, 1, {test::prompt(-1, 2), turn(0, {1, 1})});
}

frame_data hinted(ids tokens, std::string text) {
  auto out = plain("a");
  out.finish->traces[0].hint_token_ids = std::move(tokens);
  out.finish->traces[0].hint = std::move(text);
  return out;
}

} // namespace

BOOST_AUTO_TEST_SUITE(reference_requests)

BOOST_AUTO_TEST_CASE(a_teacher_reads_each_trainable_branch) {
  const fixture in({episode_of(
      "a", 1, {test::prompt(-1, 2), turn(0, {1, 1}), turn(0, {1}, 300), test::prompt(0, 1, 400)})});
  const auto prompts = in.prompts();
  BOOST_REQUIRE_EQUAL(prompts.size(), 2U);
  BOOST_TEST(prompts[0].tokens == (ids{100, 101, 200, 201}));
  BOOST_TEST(prompts[1].tokens == (ids{100, 101, 300}));
  BOOST_TEST(prompts[1].branch == 1U);
  BOOST_TEST(prompts[0].hint_tokens == 0U);
}

BOOST_AUTO_TEST_CASE(only_eligible_traces_without_reference_logprobs_are_asked_for) {
  auto known = plain("known");
  known.nodes[1].reference_logprobs = std::vector<float>{-1, -2};
  auto failed = plain("failed");
  failed.finish->traces[0].ok = false;
  auto second = plain("second");
  test::add_trace(second, 1, {test::prompt(-1, 1), turn(0, {1}, 500)});
  second.finish->traces[0].agent_trainable = false;
  const fixture in({known, failed, second, plain("last")});
  BOOST_TEST(reference_episodes(*in.header) == (std::vector<std::uint32_t>{2, 3}));
  const auto prompts = in.prompts();
  BOOST_REQUIRE_EQUAL(prompts.size(), 2U);
  BOOST_TEST(prompts[0].episode == 2U);
  BOOST_TEST(prompts[0].trace == 1U);
  BOOST_TEST(prompts[0].tokens == (ids{100, 500}));
  BOOST_TEST(prompts[1].episode == 3U);
}

BOOST_AUTO_TEST_CASE(a_hint_of_ids_comes_before_the_branch_and_wins_over_text) {
  const auto prompts = fixture({hinted({7, 8, 9}, "text")}).prompts(reference_kind::self_hinted);
  BOOST_TEST(prompts.at(0).tokens == (ids{7, 8, 9, 100, 101, 200, 201}));
  BOOST_TEST(prompts.at(0).hint_tokens == 3U);
  BOOST_TEST(prompts.at(0).hint == "");
}

BOOST_AUTO_TEST_CASE(a_hint_of_text_is_left_to_the_server) {
  const auto prompts = fixture({hinted({}, "text")}).prompts(reference_kind::self_hinted);
  BOOST_TEST(prompts.at(0).tokens == (ids{100, 101, 200, 201}));
  BOOST_TEST(prompts.at(0).hint == "text");
}

BOOST_AUTO_TEST_CASE(a_teacher_gets_no_hint) {
  BOOST_TEST(fixture({hinted({7}, "text")}).prompts().at(0).tokens.size() == 4U);
  BOOST_TEST(fixture({hinted({}, "text")}).prompts().at(0).hint == "");
}

BOOST_AUTO_TEST_CASE(a_trace_without_a_hint_is_named) {
  const fixture in({plain("bare")});
  const auto prompts = reference_prompts(*in.header, in.wanted, reference_kind::self_hinted);
  BOOST_TEST(prompts.error().message ==
             "episode 'bare', trace 0: it has no hint, and opsd needs one");
}

BOOST_AUTO_TEST_CASE(bytes_of_other_episodes_are_refused) {
  const fixture in({plain("a"), plain("b")});
  const std::vector swapped{in.wanted[1], in.wanted[0]};
  BOOST_TEST(reference_prompts(*in.header, swapped, reference_kind::teacher).error().message ==
             "episode 'b' came for trace 0 of episode 'a'");
  BOOST_TEST(reference_prompts(*in.header, std::span(swapped).first(1), reference_kind::teacher)
                 .error()
                 .message == "1 episodes came, 2 are wanted");
}

BOOST_AUTO_TEST_CASE(values_of_a_branch_begin_after_the_hint) {
  const std::vector<float> values{0, -1, -2, -3};
  BOOST_TEST(branch_values(values, 2) == (std::vector<float>{-2, -3}));
  const auto bare = branch_values(values, 0);
  BOOST_TEST(std::isnan(bare[0]));
  BOOST_TEST(bare[1] == -1);
}

BOOST_AUTO_TEST_CASE(answers_go_to_the_traces_that_they_were_asked_for) {
  const fixture in(
      {plain("a"),
       episode_of("b", 1, {test::prompt(-1, 2), turn(0, {1, 0, 1}, 300), turn(0, {1}, 400)})});
  const auto prompts = in.prompts();
  BOOST_REQUIRE_EQUAL(prompts.size(), 3U);
  std::vector<std::vector<float>> values;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    std::vector<float> whole(prompts[i].tokens.size());
    for (std::size_t t = 0; t < whole.size(); ++t)
      whole[t] = -static_cast<float>(10 * i + t);
    values.push_back(branch_values(whole, 0));
  }
  const auto assigned =
      assign_reference(*in.header, reference_of(prompts, std::move(values), in.wanted));
  BOOST_REQUIRE_MESSAGE(assigned, assigned.error().message);
  BOOST_REQUIRE_EQUAL(assigned->size(), 2U);
  BOOST_TEST(assigned->at(0).values == (std::vector<float>{-2, -3}));
  BOOST_TEST(assigned->at(1).values == (std::vector<float>{-12, -14, -22}));
}

BOOST_AUTO_TEST_CASE(a_first_token_that_trains_needs_something_before_it) {
  const fixture in({episode_of("a", 1, {turn(-1, {1, 1})})});
  const auto prompts = in.prompts();
  const std::vector<std::vector<float>> values{branch_values(std::vector<float>{0, -1}, 0)};
  const auto assigned = assign_reference(*in.header, reference_of(prompts, values, in.wanted));
  BOOST_REQUIRE(!assigned);
  BOOST_TEST(assigned.error().message.find("is nan") != std::string::npos,
             assigned.error().message);
}

BOOST_AUTO_TEST_CASE(a_completion_request_asks_for_the_prompts_own_tokens_alone) {
  BOOST_TEST(completion_body("a \"model\"", ids{1, 20}) ==
             R"({"model":"a \"model\"","prompt":[1,20],"max_tokens":1,"temperature":1.0,)"
             R"("prompt_logprobs":0,"stream":false})");
  BOOST_TEST(completion_body("", ids{1}).find("\"model\"") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_tokenize_request_holds_the_text_as_json) {
  json::document document;
  const auto root = document.parse(tokenize_body("m", "a\n\"b\" \xc3\xa9")).value();
  BOOST_TEST(root.get<std::string>("prompt").value() == "a\n\"b\" \xc3\xa9");
  BOOST_TEST(root.get<std::string>("model").value() == "m");
  BOOST_TEST(!root.get<bool>("add_special_tokens").value());
}

BOOST_AUTO_TEST_SUITE_END()
