// SPDX-License-Identifier: Apache-2.0
#include "actors/reader/env_reader.hpp"

#include "tests/unit/actors/reader/reader_fixture.hpp"

namespace millrace::test {
namespace {

BOOST_FIXTURE_TEST_SUITE(env_reader_suite, reader_fixture)

BOOST_AUTO_TEST_CASE(a_group_waits_for_its_permit_and_groups_begun_go_on) {
  write("a", "g0");
  write("b", "g0");
  write("c", "g1");
  read(1);
  BOOST_TEST(arrived().size() == 2U);
  BOOST_REQUIRE_EQUAL(planner.got<permit_wanted>().size(), 1);
  BOOST_TEST(planner.got<permit_wanted>()[0].ordinal == 1U);
  BOOST_TEST(planner.got<source_ended>().empty());
  allow(2);
  BOOST_TEST(arrived().size() == 3U);
  BOOST_REQUIRE_EQUAL(planner.got<source_ended>().size(), 1);
  BOOST_TEST(planner.got<source_ended>()[0].groups == 2U);
}

BOOST_AUTO_TEST_CASE(all_episodes_of_a_group_go_to_one_assembler_and_groups_take_turns) {
  for (const char *id : {"a", "b"})
    for (const char *group : {"g0", "g1"})
      write(id, group);
  read();
  for (auto *side : {&left, &right}) {
    BOOST_REQUIRE_EQUAL(side->got<episode_arrived>().size(), 2);
    BOOST_TEST(side->got<episode_arrived>()[0].group.ordinal ==
               side->got<episode_arrived>()[1].group.ordinal);
  }
}

BOOST_AUTO_TEST_CASE(readers_of_one_recording_share_it_without_loss_or_repeat) {
  for (int i = 0; i < 30; ++i)
    write(fmt::format("e{}", i), fmt::format("g{}", i % 10));
  options.count = 3;
  read();
  std::set<std::string> ids;
  for (const auto &one : arrived()) {
    ids.emplace(one.episode.id());
    BOOST_TEST(text_of(one.episode.head().key()->group()) == fmt::format("g{}", one.group.ordinal));
  }
  BOOST_TEST(arrived().size() == 30U);
  BOOST_TEST(ids.size() == 30U);
  BOOST_TEST(left.got<source_ended>().size() == 3U);
}

// Two environments that both number from 0, siblings apart.
BOOST_AUTO_TEST_CASE(groups_are_told_apart_by_the_whole_key_whatever_lies_between_siblings) {
  for (const char *id : {"a", "b", "c"}) {
    write(id, "0", "math");
    write(id, "0", "code");
    auto other_run = unsized(id, {"run-2", "math", "7", "0"});
    write(other_run);
    auto other_task = unsized(id, {"run-1", "math", "8", "0"});
    write(other_task);
  }
  read();
  std::map<std::uint64_t, std::set<std::uint32_t>> members;
  for (const auto &one : arrived())
    members[one.group.ordinal].insert(one.member);
  BOOST_TEST(members.size() == 4U);
  for (const auto &[ordinal, places] : members)
    BOOST_TEST((places == std::set<std::uint32_t>{0, 1, 2}));
}

BOOST_AUTO_TEST_CASE(an_id_outside_the_vocabulary_rejects_its_episode_and_no_other) {
  write("good", "g0");
  auto bad = unsized("bad", some_key("math", "g0"));
  bad.nodes[1].token_ids[2] = 1000;
  write(bad);
  auto last = unsized("last", some_key("math", "g0"));
  last.nodes[0].token_ids[2] = 999;
  write(last);
  read();
  BOOST_TEST(arrived().size() == 2U);
  BOOST_REQUIRE_EQUAL(left.got<episode_rejected>().size(), 1);
  const auto &rejected = left.got<episode_rejected>()[0];
  BOOST_TEST(rejected.id == "bad");
  BOOST_TEST(rejected.member == 1U);
  BOOST_TEST(rejected.reason.find("token_ids[2] is 1000") != std::string::npos);
  BOOST_REQUIRE_EQUAL(refusals().size(), 1);
  BOOST_TEST(refusals()[0].find("\"episode\":\"bad\"") != std::string::npos);
  BOOST_TEST(counters->episodes == 3U);
  BOOST_TEST(counters->rejected == 1U);
}

BOOST_AUTO_TEST_CASE(an_episode_of_another_sampler_than_its_environment_wants_is_rejected) {
  options.demands.by_env = {{"math", {false}}, {"sft", {true}}, {"any", {}}};
  options.demands.other = {false};
  for (const std::string env : {"math", "sft", "any", "other"})
    for (const bool frozen : {false, true}) {
      auto episode = unsized(env + (frozen ? "-frozen" : "-live"), some_key(env, "g"));
      episode.frozen = frozen;
      write(episode);
    }
  auto evaluation = unsized("eval", some_key("math", "g"));
  evaluation.frozen = evaluation.eval = true;
  write(evaluation);
  read();
  BOOST_TEST(arrived().size() == 6U);
  std::set<std::string> rejected;
  std::string reason;
  for (auto *assembler : {&left, &right})
    for (const auto &one : assembler->got<episode_rejected>()) {
      rejected.insert(one.id);
      reason = one.id == "math-frozen" ? one.reason : reason;
    }
  BOOST_TEST((rejected == std::set<std::string>{"math-frozen", "sft-live", "other-frozen"}));
  BOOST_TEST(reason ==
             "episode 'math-frozen': a frozen model sampled it, and the sampler of environment "
             "'math' is live");
  BOOST_TEST(counters->rejected == 3U);
}

BOOST_AUTO_TEST_CASE(an_episode_without_a_hint_is_rejected_where_opsd_wants_one) {
  options.demands.by_env = {{"math", {.hints = true}}};
  const auto with = [&](const std::string &id, const std::string &env, auto &&change) {
    auto episode = unsized(id, some_key(env, "g"));
    change(*episode.finish);
    write(episode);
  };
  with("ids", "math", [](finish_data &end) { end.traces[0].hint_token_ids = {1}; });
  with("none", "math", [](finish_data &) {});
  with("text", "math", [](finish_data &end) { end.traces[0].hint = "think"; });
  with("failed", "math", [](finish_data &end) { end.traces[0].ok = false; });
  with("untrained", "math", [](finish_data &end) { end.traces[0].agent_trainable = false; });
  with("other", "grpo", [](finish_data &) {});
  read();
  BOOST_TEST(arrived().size() == 5U);
  BOOST_REQUIRE_EQUAL(left.got<episode_rejected>().size(), 1);
  BOOST_TEST(left.got<episode_rejected>()[0].reason ==
             "episode 'none', trace 0: it has neither hint_token_ids nor a hint, and opsd scores "
             "it after one");
  BOOST_TEST(refusals().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_bad_frame_rejects_its_episode_once_and_what_follows_is_not_looked_at) {
  auto frames = some_episode_in_two("a");
  frames[0].nodes[0].mask[0] = 1; // and no logprob for it
  write_frame(frames[0]);
  write_frame(frames[1]);
  read();
  BOOST_TEST(left.got<frame_arrived>().empty());
  BOOST_TEST(left.got<episode_rejected>().size() == 1U);
  BOOST_TEST(counters->episodes == 1U);
}

BOOST_AUTO_TEST_CASE(a_record_whose_names_cannot_be_reported_is_counted_by_its_bytes) {
  write(std::string(5000, 'x'), "g0");
  write("a", "g0");
  read();
  BOOST_TEST(arrived().size() == 1U);
  BOOST_TEST(counters->unnamed_records == 1U);
  BOOST_TEST(counters->unnamed_bytes > 5000U);
  BOOST_TEST(supervisor.got<source_report>().at(0).counts->episodes == 1U);
}

BOOST_AUTO_TEST_CASE(a_group_size_that_contradicts_the_config_rejects_the_episode_with_both_sizes) {
  options.sizes.by_env = {{"math", 8}};
  write(some_episode("a", some_key("math", "g0"))); // says 2
  read();
  BOOST_REQUIRE_EQUAL(left.got<episode_rejected>().size(), 1);
  const auto &reason = left.got<episode_rejected>()[0].reason;
  BOOST_TEST(reason.find("8") != std::string::npos);
  BOOST_TEST(reason.find("2") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_environment_without_a_section_has_the_default_group_size) {
  options.sizes.other = 3;
  options.sizes.by_env = {{"math", 5}};
  write(unsized("a", some_key("code", "g0")));
  write(unsized("a", some_key("math", "g0")));
  read();
  BOOST_TEST(left.got<episode_arrived>().at(0).info->size == 3U);
  BOOST_TEST(right.got<episode_arrived>().at(0).info->size == 5U);
}

BOOST_AUTO_TEST_CASE(an_episode_beyond_the_size_of_its_group_is_refused_once_and_counted) {
  for (const char *id : {"a", "b", "c", "c", "a"})
    write(some_episode(id, some_key("math", "g0"))); // a group of 2
  read();
  BOOST_TEST(arrived().size() == 3U); // a, b, and a again, which the assembler counts
  BOOST_TEST(left.got<episode_rejected>().empty());
  BOOST_TEST(counters->surplus == 1U);
  BOOST_REQUIRE_EQUAL(refusals().size(), 1);
  BOOST_TEST(refusals()[0].find("has 2 episodes") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_record_that_does_not_parse_counts_for_its_group_and_in_the_balance) {
  const auto key = some_key("math", "g0");
  write_unparsable(some_episode("a", key));
  write_raw(some_episode("b", key));
  read();
  BOOST_TEST(left.got<episode_rejected>().at(0).id == "a");
  BOOST_TEST(left.got<episode_arrived>().size() == 1U);
  BOOST_TEST(expected_episodes() == 2U);
}

BOOST_AUTO_TEST_CASE(a_record_that_does_not_parse_adds_nothing_if_another_of_its_episode_does) {
  const auto key = some_key("math", "g0");
  write_unparsable(some_episode("a", key));
  write_raw(some_episode("a", key));
  read();
  BOOST_TEST(left.got<episode_rejected>().size() == 1U);
  BOOST_TEST(expected_episodes() == 1U);
}

BOOST_AUTO_TEST_CASE(a_surplus_record_that_does_not_parse_is_in_the_balance_too) {
  const auto key = some_key("math", "g0"); // a group of 2
  write_raw(some_episode("a", key));
  write_raw(some_episode("b", key));
  write_unparsable(some_episode("c", key));
  read();
  BOOST_TEST(counters->surplus == 1U);
  BOOST_TEST(expected_episodes() == 3U);
}

BOOST_AUTO_TEST_CASE(a_refused_attempt_does_not_take_a_later_one_with_it) {
  auto bad = unsized("a", some_key("math", "g0"));
  bad.nodes[1].token_ids[0] = 5000;
  write(bad);
  auto good = unsized("a", some_key("math", "g0"));
  good.attempt = 1;
  write(good);
  read();
  BOOST_TEST(left.got<episode_rejected>().size() == 1U);
  BOOST_TEST(left.got<episode_arrived>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_size_that_comes_after_its_group_began_is_passed_on) {
  auto episode = some_episode("a", some_key("math", "g0"));
  episode.group_size = 0;
  write(episode);
  BOOST_REQUIRE(file->append_group_size(some_key("math", "g0"), 5));
  read();
  BOOST_TEST(left.got<episode_arrived>().at(0).info->size == 0U);
  BOOST_TEST(left.got<group_sized>().at(0).info->size == 5U);
}

BOOST_AUTO_TEST_CASE(a_group_of_which_only_the_size_is_known_is_begun_at_the_end) {
  BOOST_REQUIRE(file->append_group_size(some_key("math", "empty"), 5));
  write("a", "g0");
  read();
  BOOST_TEST(left.got<group_sized>().size() + right.got<group_sized>().size() == 1U);
  BOOST_TEST(planner.got<source_ended>().at(0).groups == 2U);
}

BOOST_AUTO_TEST_CASE(the_supervisor_hears_what_the_closing_index_says) {
  write("a", "g0");
  write("b", "g0");
  read();
  BOOST_REQUIRE_EQUAL(supervisor.got<source_report>().size(), 1);
  BOOST_TEST(supervisor.got<source_report>()[0].counts->episodes == 2U);
  BOOST_TEST(supervisor.got<source_report>()[0].damage.empty());
}

BOOST_AUTO_TEST_CASE(who_waits_for_a_permit_says_how_far_the_run_is) {
  write("e0", "g0");
  write("e1", "g1");
  read(1);
  tell_all(planner_progress{4, 5, 2});
  const auto waits = counters->waits->snapshot();
  BOOST_REQUIRE_EQUAL(waits.size(), 1);
  BOOST_TEST(waits[0].what ==
             "a permit to begin group 1: step 5 is collected, 2 steps' worth of groups wait");
}

// It is in a step that has to be made again; the planner says so while the reader waits to read it.
BOOST_AUTO_TEST_CASE(a_group_of_which_only_the_size_is_known_is_sent_when_it_is_wanted) {
  BOOST_REQUIRE(file->append_group_size(some_key("math", "g0"), 1));
  BOOST_REQUIRE(file->append_group_size(some_key("math", "g1"), 1));
  write("e0", "g0");
  write("e1", "g1");
  BOOST_REQUIRE(file->finish());
  owned_actor reader(world.system().spawn<env_reader>(
      world.context(), options,
      std::make_unique<recording_source>(recording_reader::open(folder / "r.mrec").value()),
      env_reader_peers{assemblers, planner.actor(), supervisor.actor()}, counters, refused));
  caf::anon_send(static_cast<const caf::actor &>(reader), groups_settled{{{1, 0}}, false});
  world.run(); // reads both sizes, and waits for a permit to begin group 0
  world.tell(reader, groups_wanted{{{1, 0}}, true});
  world.tell(reader, permit{everything});
  auto again = left.got<group_again>();
  again.insert(again.end(), right.got<group_again>().begin(), right.got<group_again>().end());
  BOOST_REQUIRE_EQUAL(again.size(), 1);
  BOOST_TEST(again[0].group.ordinal == 1U);
  BOOST_TEST(arrived().size() == 2U);
}

/// A source that makes one episode a group, and says how many it has made.
class live_stub final : public record_source {
public:
  explicit live_stub(std::uint64_t &made) : made_(made) {}
  std::optional<record> next() override {
    const auto number = std::to_string(made_++);
    auto episode = some_episode("e" + number, some_key("math", "g" + number));
    episode.group_size = 1;
    return record{record_kind::frame, 0, encode(episode).value()};
  }
  const std::string &name() const noexcept override { return name_; }
  const std::string &source() const noexcept override { return name_; }
  bool begins_group() const noexcept override { return true; }

private:
  const std::string name_ = "live";
  std::uint64_t &made_;
};

// What a live policy samples is as old as it is made early.
BOOST_AUTO_TEST_CASE(a_live_source_makes_no_group_before_it_may_begin) {
  std::uint64_t made = 0;
  BOOST_REQUIRE(file->finish());
  owned_actor reader(world.system().spawn<env_reader>(
      world.context(), options, std::make_unique<live_stub>(made),
      env_reader_peers{assemblers, planner.actor(), supervisor.actor()}, counters, refused));
  world.run();
  BOOST_TEST(made == 0U);
  BOOST_REQUIRE_EQUAL(planner.got<permit_wanted>().size(), 1);
  BOOST_TEST(planner.got<permit_wanted>()[0].ordinal == 0U);
  world.tell(reader, permit{2});
  BOOST_TEST(made == 2U);
  BOOST_TEST(planner.got<permit_wanted>().back().ordinal == 2U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
