// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/ledger.hpp"

#include <boost/test/unit_test.hpp>

#include "actors/planner/ready_group.hpp"
#include "actors/scorer/annotate.hpp"
#include "tests/support/groups.hpp"

namespace millrace::test {
namespace {

frame_data episode(const std::string &id, double reward, std::size_t prompt_tokens = 3) {
  return episode_of(id, reward, {prompt(-1, prompt_tokens), turn(0, {1, 1, 1})});
}

frame_data ended(frame_data data, wire::EpisodeStatus status) {
  data.finish->status = status;
  return data;
}

/// Scores these episodes with seq_len 100; packs every kept sample, cut at 100 tokens.
struct scored {
  explicit scored(const std::vector<frame_data> &episodes, const env_config &config = {})
      : group([&] {
          const auto header = header_of(group_of(episodes), 100, rules_of(config.filter, 150'000));
          return make_ready_group(header.bytes(), annotate(header, config, {}).value().annotations,
                                  100)
              .value();
        }()) {}

  void pack() {
    for (auto &sample : group.samples) {
      sample.outcome = sample_record::fate::packed;
      sample.kept = std::min<std::uint64_t>(sample.tokens, 100);
    }
  }
  std::vector<episode_state> states(group_end end = group_end::settled) const {
    return states_of(*group.header, &**group.annotations, group.samples, end);
  }
  log_group entry() const {
    return group_entry(*group.header, &**group.annotations, group.samples, group_end::settled);
  }
  ready_group group;
};

BOOST_AUTO_TEST_SUITE(ledger_suite)

BOOST_AUTO_TEST_CASE(every_episode_of_a_mixed_group_has_its_own_state) {
  auto eval = episode("f", 1);
  eval.eval = true;
  scored some({episode("a", 1), episode("b", 0),
               ended(episode("c", 0), wire::EpisodeStatus::Errored),
               ended(episode("d", 0), wire::EpisodeStatus::Cancelled),
               ended(episode("e", 0), wire::EpisodeStatus::Rejected), eval,
               episode_of("g", 0, {prompt(-1, 4)})});
  some.pack();
  using state = episode_state;
  const std::vector expected{state::trained,  state::trained, state::errored,   state::cancelled,
                             state::rejected, state::eval,    state::ineligible};
  BOOST_TEST((some.states() == expected));
}

BOOST_AUTO_TEST_CASE(an_episode_is_truncated_if_the_cut_takes_all_its_trainable_tokens) {
  scored some({episode("a", 1, 100), episode("b", 0, 99)});
  some.pack();
  BOOST_TEST((some.states()[0] == episode_state::truncated));
  BOOST_TEST((some.states()[1] == episode_state::trained));
  ledger book;
  book.add(some.entry());
  BOOST_TEST(book.cut_tokens == 3U + 2U);
}

BOOST_AUTO_TEST_CASE(a_uniform_group_is_pruned_or_with_a_gate_gated) {
  BOOST_TEST((scored({episode("a", 1), episode("b", 1)}).states()[1] == episode_state::pruned));
  env_config gate;
  gate.gate = {0.0, 0.0};
  BOOST_TEST(
      (scored({episode("a", 1), episode("b", 1)}, gate).states()[1] == episode_state::gated));
}

env_config dropping_repetition(filter_action action) {
  env_config config;
  config.filter.repetition = {action, 3, 0.99};
  return config;
}

frame_data looping(const std::string &id, double reward) {
  auto out = episode(id, reward);
  out.nodes[1].logprobs = {-0.001F, -0.001F, -0.001F};
  return out;
}

BOOST_AUTO_TEST_CASE(an_episode_whose_trace_a_filter_drops_is_filtered) {
  scored some({looping("a", 1), episode("b", 0)}, dropping_repetition(filter_action::drop));
  some.pack();
  BOOST_TEST((some.states() == std::vector{episode_state::filtered, episode_state::trained}));
  ledger book;
  book.add(some.entry());
  BOOST_TEST(book.samples[static_cast<std::size_t>(episode_state::filtered)].samples == 1U);
  BOOST_TEST(book.samples[static_cast<std::size_t>(episode_state::filtered)].tokens == 6U);
  BOOST_TEST(book.repetition == 1U);
  BOOST_TEST(book.gibberish == 0U);
}

BOOST_AUTO_TEST_CASE(a_trace_that_is_only_counted_trains) {
  scored some({looping("a", 1), episode("b", 0)}, dropping_repetition(filter_action::count));
  some.pack();
  BOOST_TEST((some.states() == std::vector(2, episode_state::trained)));
  BOOST_TEST(some.entry().repetition == 1U);
}

BOOST_AUTO_TEST_CASE(pruned_and_gated_come_before_filtered) {
  auto config = dropping_repetition(filter_action::drop);
  const std::vector uniform{looping("a", 1), episode("b", 1)};
  BOOST_TEST((scored(uniform, config).states()[0] == episode_state::pruned));
  config.gate = {0.0, 0.0};
  BOOST_TEST((scored(uniform, config).states()[0] == episode_state::gated));
}

BOOST_AUTO_TEST_CASE(one_trained_trace_makes_an_episode_trained_whatever_is_filtered) {
  auto both = episode("a", 1);
  add_trace(both, 0.5, looping("x", 0).nodes);
  scored some({both, episode("b", 0)}, dropping_repetition(filter_action::drop));
  some.pack();
  BOOST_TEST((some.states()[0] == episode_state::trained));
}

BOOST_AUTO_TEST_CASE(what_no_step_has_taken_is_held) {
  BOOST_TEST((scored({episode("a", 1), episode("b", 0)}).states(group_end::held)[0] ==
              episode_state::held));
}

BOOST_AUTO_TEST_CASE(all_of_an_expired_group_is_expired) {
  scored some({episode("a", 1), ended(episode("b", 0), wire::EpisodeStatus::Errored)});
  const auto states = states_of(*some.group.header, nullptr, {}, group_end::expired);
  BOOST_TEST((states == std::vector(2, episode_state::expired)));
}

BOOST_AUTO_TEST_CASE(an_unscored_group_is_rejected_but_for_what_had_failed_before) {
  scored some({episode("a", 1), ended(episode("b", 0), wire::EpisodeStatus::Errored)});
  const auto states = states_of(*some.group.header, nullptr, {}, group_end::unscored);
  BOOST_TEST((states == std::vector{episode_state::rejected, episode_state::errored}));
}

BOOST_AUTO_TEST_CASE(what_is_ok_in_a_void_group_is_stale_and_the_rest_stays_what_it_was) {
  auto eval = episode("d", 1);
  eval.eval = true;
  scored some({episode("a", 1), ended(episode("b", 0), wire::EpisodeStatus::Errored),
               ended(episode("c", 0), wire::EpisodeStatus::Cancelled), eval,
               episode_of("e", 0, {prompt(-1, 4)})});
  using state = episode_state;
  const std::vector expected{state::stale, state::errored, state::cancelled, state::eval,
                             state::stale};
  BOOST_TEST((states_of(*some.group.header, nullptr, {}, group_end::stale) == expected));
}

BOOST_AUTO_TEST_CASE(what_is_ok_in_a_dropped_group_is_group_dropped) {
  scored some({episode("a", 1), ended(episode("b", 0), wire::EpisodeStatus::Rejected)});
  BOOST_TEST((states_of(*some.group.header, nullptr, {}, group_end::dropped) ==
              std::vector{episode_state::group_dropped, episode_state::rejected}));
}

BOOST_AUTO_TEST_CASE(in_a_unit_whose_sample_could_not_be_planned_the_others_are_dropped) {
  scored some({episode("a", 1), episode("b", 0)});
  some.pack();
  some.group.samples[1].outcome = sample_record::fate::rejected;
  BOOST_TEST((some.states(group_end::dropped) ==
              std::vector{episode_state::group_dropped, episode_state::rejected}));
}

BOOST_AUTO_TEST_CASE(samples_that_are_too_old_are_counted_with_the_longest) {
  scored some({episode("a", 1, 50), episode("b", 0, 20)});
  for (auto &sample : some.group.samples)
    sample.outcome = sample_record::fate::stale;
  BOOST_TEST((some.states()[0] == episode_state::stale));
  ledger book;
  book.add(some.entry());
  const auto &row = book.samples[static_cast<std::size_t>(episode_state::stale)];
  BOOST_TEST(row.samples == 2U);
  BOOST_TEST(row.tokens == 53U + 23U);
  BOOST_TEST(book.longest_stale == 53U);
}

BOOST_AUTO_TEST_CASE(a_group_that_its_deadline_closed_is_expired_and_named) {
  scored some({episode("a", 1)});
  ledger book;
  book.add(group_entry(*some.group.header, nullptr, {}, group_end::overdue));
  BOOST_TEST(book[episode_state::expired] == 1U);
  BOOST_REQUIRE_EQUAL(book.overdue.size(), 1);
  BOOST_TEST(book.overdue[0].second == 1U);
}

BOOST_AUTO_TEST_CASE(samples_and_tokens_are_counted_beside_the_episodes) {
  scored some({episode("a", 1), episode("b", 0)});
  some.pack();
  ledger book;
  book.add(some.entry());
  const auto &row = book.samples[static_cast<std::size_t>(episode_state::trained)];
  BOOST_TEST(row.samples == 2U);
  BOOST_TEST(row.tokens == 12U);
  BOOST_TEST(book.total() == 2U);
  BOOST_TEST(book.groups == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
