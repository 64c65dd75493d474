// SPDX-License-Identifier: Apache-2.0
#include "actors/reader/bigram_env.hpp"

#include <cmath>
#include <set>

#include <boost/test/unit_test.hpp>

#include "actors/trainer/bigram.hpp"
#include "schema/episode.hpp"
#include "tests/support/temporary_folder.hpp"

namespace millrace::test {
namespace {

constexpr std::uint32_t vocab = 6;

struct env_fixture {
  std::shared_ptr<bigram_board> board = std::make_shared<bigram_board>();
  std::shared_ptr<live_tally> tally = std::make_shared<live_tally>();
  std::shared_ptr<memory_meter> meter = std::make_shared<memory_meter>();
  bigram_env_options options{
      .run = "r", .seed = 3, .vocab_size = vocab, .group_size = 4, .temperature = 1};

  env_fixture() { board->publish(0, bigram_logits(vocab * vocab)); }
  std::unique_ptr<bigram_env> made() {
    return bigram_env::make(options, board, tally, meter).value();
  }
  static episode_frame next(bigram_env &of) {
    auto parsed = episode_frame::parse(of.next()->parts);
    BOOST_REQUIRE_MESSAGE(parsed, parsed.error().message);
    return std::move(*parsed);
  }
  static double reward(const episode_frame &of) {
    return of.table().finish()->traces()->Get(0)->reward();
  }
  /// Logits by which each token is followed by the one that the secret wants.
  static bigram_logits knowing(const bigram_env &env) {
    bigram_logits out(vocab * vocab);
    for (std::uint32_t k = 0; k < vocab; ++k)
      out[k * vocab + env.secret()[k]] = 50;
    return out;
  }
};

BOOST_FIXTURE_TEST_SUITE(bigram_environments, env_fixture)

BOOST_AUTO_TEST_CASE(its_episodes_pass_the_door_and_a_group_shares_its_task) {
  const auto env = made();
  std::set<std::string> ids, groups, tasks;
  for (int i = 0; i < 8; ++i) {
    const auto episode = next(*env);
    BOOST_TEST(check_elements(episode, {.vocab_size = vocab}).has_value());
    ids.emplace(text_of(episode.table().episode()));
    const auto key = key_of(*episode.table().key());
    groups.insert(key.group);
    BOOST_TEST(episode.table().group_size() == 4U);
    if (i < 4)
      tasks.insert(key.task);
  }
  BOOST_TEST(ids.size() == 8U);
  BOOST_TEST(groups.size() == 2U);
  BOOST_TEST(tasks.size() == 1U);
}

BOOST_AUTO_TEST_CASE(the_logprobs_are_those_of_the_parameters_that_sampled) {
  bigram_logits logits(vocab * vocab);
  for (std::size_t i = 0; i < logits.size(); ++i)
    logits[i] = std::sin(static_cast<double>(i));
  board->publish(7, logits);
  options.temperature = 0.5;
  const auto episode = next(*made());
  BOOST_TEST(episode.table().first_version() == 7U);
  BOOST_TEST(episode.table().last_version() == 7U);
  const auto *turn = episode.table().nodes()->Get(1);
  auto before = episode.table().nodes()->Get(0)->token_ids()->Get(0);
  for (std::uint32_t i = 0; i < bigram_env::turn_tokens; ++i) {
    const auto token = turn->token_ids()->Get(i);
    const auto row = row_of(logits.data() + before * static_cast<int>(vocab), vocab, 0.5);
    BOOST_TEST(turn->logprobs()->Get(i) ==
               static_cast<float>(logprob_of(row, static_cast<std::size_t>(token))));
    before = token;
  }
}

BOOST_AUTO_TEST_CASE(chance_gets_one_in_so_many_and_who_knows_the_secret_gets_all) {
  const auto env = made();
  double sum = 0;
  for (int i = 0; i < 400; ++i)
    sum += reward(next(*env));
  BOOST_TEST(sum / 400 == 1.0 / vocab, boost::test_tools::tolerance(0.15));
  board->publish(1, knowing(*env));
  BOOST_TEST(reward(next(*env)) == 1.0);
}

BOOST_AUTO_TEST_CASE(a_group_that_has_begun_goes_on_with_the_parameters_that_it_began_with) {
  const auto env = made();
  next(*env);
  board->publish(1, knowing(*env));
  for (int i = 1; i < 4; ++i)
    BOOST_TEST(next(*env).table().first_version() == 0U);
  BOOST_TEST(env->begins_group());
  BOOST_TEST(next(*env).table().first_version() == 1U);
  BOOST_TEST(!env->begins_group());
}

BOOST_AUTO_TEST_CASE(the_same_seed_and_parameters_give_the_same_episodes) {
  const auto one = made(), same = made();
  options.seed = 4;
  const auto other = made();
  bool differs = false;
  for (int i = 0; i < 8; ++i) {
    const auto bytes = next(*one).parts()[0];
    BOOST_TEST((std::ranges::equal(bytes.bytes(), next(*same).parts()[0].bytes())));
    differs = differs || !std::ranges::equal(bytes.bytes(), next(*other).parts()[0].bytes());
  }
  BOOST_TEST(differs);
}

BOOST_AUTO_TEST_CASE(what_it_made_is_counted_held_and_recorded) {
  const temporary_folder folder;
  options.record = folder / "live.mrec";
  std::uint64_t tokens = 0;
  {
    const auto env = made();
    std::vector<episode_frame> kept;
    for (int i = 0; i < 6; ++i) {
      kept.push_back(next(*env));
      tokens += bigram_env::turn_tokens + 1;
    }
    BOOST_TEST(meter->held > 0U);
    BOOST_TEST(!std::filesystem::exists(options.record));
    BOOST_TEST(env->close().has_value());
  }
  BOOST_TEST(tally->counts().episodes == 6U);
  BOOST_TEST(tally->counts().tokens == tokens);
  auto reader = recording_reader::open(options.record).value();
  const auto found = count_recording(reader);
  BOOST_TEST(found.episodes == 6U);
  BOOST_TEST(found.tokens == tokens);
  BOOST_TEST(found.groups.size() == 2U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
