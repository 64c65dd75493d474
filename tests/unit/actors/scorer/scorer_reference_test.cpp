// SPDX-License-Identifier: Apache-2.0
// A scorer whose groups a model server scores, and what becomes of them when somebody is lost.
#include <map>

#include <boost/test/unit_test.hpp>

#include "actors/scorer/scorer.hpp"
#include "tests/support/actors.hpp"
#include "tests/support/groups.hpp"

namespace millrace::test {
namespace {

using ordinals = std::vector<std::uint64_t>;

struct distilling_scorer {
  using assembler_probe = probe<fetch_episodes>;
  struct request {
    std::size_t prompts = 0;
    std::size_t tokens = 0;
    reference_client::done done;
  };

  actor_world world;
  probe<group_scored, group_tombstone, score_wanted> planner{world};
  assembler_probe first{world};
  assembler_probe second{world};
  probe<drained, run_failed> supervisor{world};
  std::shared_ptr<run_counters> counters = std::make_shared<run_counters>();
  std::vector<request> server; ///< what it was asked, in order
  owned_actor subject{world.system().spawn<scorer>(
      world.context(), "scorer-0", settings(), scorer_peers{planner.actor(), supervisor.actor()},
      counters,
      [this](const env_config &env, std::vector<reference_prompt> prompts,
             reference_client::done then) {
        BOOST_TEST(env.teacher.endpoint == "http://teacher:1");
        server.push_back({prompts.size(), prompts.at(0).tokens.size(), std::move(then)});
      })};

  ~distilling_scorer() {
    server.clear(); // they hold the scorer
    world.end(subject);
  }
  static std::shared_ptr<const run_config> settings() {
    auto out = std::make_shared<run_config>();
    out->envs["distil"].algorithm = "opd";
    out->envs["distil"].teacher.endpoint = "http://teacher:1";
    return out;
  }
  /// Three tokens of a prompt, then two that train.
  static frame_data episode() {
    auto out = episode_of("a", 1, {prompt(-1, 3), turn(0, {1, 1})});
    out.key.env = "distil";
    return out;
  }
  static frame header(std::uint64_t ordinal) {
    auto members = group_of({episode()});
    members.key.env = "distil";
    members.ordinal = ordinal;
    return header_of(members).bytes();
  }
  peer assembler(const assembler_probe &who) const {
    return named(&who == &first ? "assembler-0" : "assembler-1", who.actor());
  }
  void offer(std::uint64_t ordinal, const assembler_probe &who) {
    world.tell(subject, group_complete{{ordinal, 0}, header(ordinal), assembler(who)});
  }
  void turn_of(std::uint64_t ordinal) {
    world.tell(subject, score_turn{{ordinal, 0}, false, 0, {}});
  }
  /// Offered by the first assembler, with its turn.
  void begin(std::uint64_t ordinal) {
    offer(ordinal, first);
    turn_of(ordinal);
  }
  static ordinals fetched(assembler_probe &from) {
    ordinals out;
    for (const auto &one : from.got<fetch_episodes>())
      out.push_back(one.group.ordinal);
    return out;
  }
  /// The assembler gives what it was asked for at last, or says why it does not.
  void give(assembler_probe &from, std::string problem = {}) {
    const auto asked = from.got<fetch_episodes>().back();
    episodes_fetched out{.job = asked.job, .group = asked.group, .episodes = {}, .problem = {}};
    if (problem.empty())
      out.episodes.push_back(sealed_one(episode()));
    out.problem = std::move(problem);
    world.tell(subject, std::move(out));
  }
  void answer(std::size_t which, reference_client::answer what) {
    std::exchange(server.at(which).done, nullptr)(std::move(what));
    world.run();
  }
  static reference_client::answer good() {
    return std::vector<std::vector<float>>{{0, -1, -2, -3, -4}};
  }
  static reference_client::answer bad(errc code) {
    return tl::unexpected(error{code, "http://teacher:1: it went wrong"});
  }
  void lose(const assembler_probe &who) {
    world.tell(subject, peer_down{role::assembler, assembler(who), "lost"});
  }
};

BOOST_FIXTURE_TEST_SUITE(distilling_scorers, distilling_scorer)

BOOST_AUTO_TEST_CASE(a_group_gets_the_values_of_its_trainable_tokens_and_is_logged_without_a_key) {
  begin(0);
  give(first);
  BOOST_REQUIRE_EQUAL(server.size(), 1U);
  BOOST_TEST(server[0].prompts == 1U);
  BOOST_TEST(server[0].tokens == 5U);
  answer(0, good());
  BOOST_REQUIRE_EQUAL(planner.got<group_scored>().size(), 1U);
  const auto &scored = planner.got<group_scored>()[0];
  BOOST_REQUIRE(scored.once.has_value());
  BOOST_TEST(scored.once->key.empty());
  BOOST_TEST(scored.once->number == 0U);
  const auto found = parse<wire::GroupAnnotations>(scored.annotations).value();
  const auto *values = found->traces()->Get(0)->reference_logprobs();
  BOOST_REQUIRE(values != nullptr);
  BOOST_TEST((std::vector<float>(values->begin(), values->end()) == std::vector<float>{-3, -4}));
}

BOOST_AUTO_TEST_CASE(without_a_turn_nobody_is_asked) {
  offer(0, first);
  BOOST_TEST(fetched(first).empty());
}

// So it is when the planner has started again: it hands out turns anew.
BOOST_AUTO_TEST_CASE(a_turn_that_comes_twice_asks_once) {
  begin(0);
  turn_of(0);
  give(first);
  turn_of(0);
  BOOST_TEST(fetched(first) == ordinals{0}, boost::test_tools::per_element());
  BOOST_TEST(server.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_group_that_is_offered_again_while_it_is_asked_about_gets_that_answer) {
  begin(0);
  give(first);
  offer(0, second);
  turn_of(0);
  answer(0, good());
  BOOST_TEST(server.size() == 1U);
  BOOST_REQUIRE_EQUAL(planner.got<group_scored>().size(), 1U);
  BOOST_TEST((planner.got<group_scored>()[0].assembler == assembler(second)));
}

BOOST_AUTO_TEST_CASE(jobs_of_a_lost_assembler_are_free_for_others) {
  for (std::uint64_t i = 0; i < 4; ++i)
    begin(i); // as many as there are jobs
  offer(4, second);
  turn_of(4);
  BOOST_TEST(fetched(second).empty());
  lose(first);
  BOOST_TEST(fetched(second) == ordinals{4}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(
    a_group_that_moved_before_its_first_assembler_was_lost_is_fetched_from_the_other) {
  begin(0);
  offer(0, second);
  lose(first);
  BOOST_TEST(fetched(second) == ordinals{0}, boost::test_tools::per_element());
  give(second);
  answer(0, good());
  BOOST_TEST(planner.got<group_scored>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(an_assembler_that_has_it_no_more_leaves_it_to_the_one_that_offered_it_since) {
  begin(0);
  offer(0, second);
  give(first, "assembler-0 does not hold group 0");
  BOOST_TEST(fetched(second) == ordinals{0}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_answer_for_a_group_that_was_given_up_is_nobodys) {
  begin(0);
  give(first);
  lose(first);
  begin(0);
  give(first);
  answer(0, good());
  BOOST_TEST(planner.got<group_scored>().empty());
  answer(1, good());
  BOOST_TEST(planner.got<group_scored>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_server_that_is_gone_or_refuses_everything_ends_the_run) {
  std::size_t asked = 0;
  for (const auto code : {errc::peer_lost, errc::timed_out, errc::not_found, errc::io}) {
    begin(asked);
    give(first);
    answer(asked++, bad(code));
    BOOST_REQUIRE_EQUAL(supervisor.got<run_failed>().size(), asked);
    BOOST_TEST((supervisor.got<run_failed>().back().what.code == code));
  }
  BOOST_TEST(planner.got<group_tombstone>().empty());
}

BOOST_AUTO_TEST_CASE(a_server_that_lies_costs_the_group_that_it_lied_about) {
  begin(0);
  give(first);
  answer(0, bad(errc::bad_value));
  BOOST_REQUIRE_EQUAL(planner.got<group_tombstone>().size(), 1U);
  BOOST_TEST((planner.got<group_tombstone>()[0].reason == tombstone_reason::unscored));
  BOOST_TEST(supervisor.got<run_failed>().empty());
}

BOOST_AUTO_TEST_CASE(a_drained_scorer_waits_for_its_answers_and_shows_for_whom) {
  begin(0);
  world.tell(subject, drain{});
  BOOST_TEST(counters->waits->snapshot().at(0).on == "assembler-0");
  give(first);
  BOOST_TEST(counters->waits->snapshot().at(0).on == "http://teacher:1");
  BOOST_TEST(supervisor.got<drained>().empty());
  answer(0, good());
  BOOST_TEST(supervisor.got<drained>().size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
