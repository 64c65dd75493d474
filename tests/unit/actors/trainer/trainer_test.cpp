// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/trainer.hpp"

#include <chrono>
#include <csignal>
#include <optional>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "actors/trainer/policy_learner.hpp"
#include "actors/trainer/replay_policy.hpp"
#include "runtime/collective/local.hpp"
#include "runtime/file.hpp"
#include "tests/support/actors.hpp"
#include "tests/support/full_disk.hpp"
#include "tests/support/temporary_folder.hpp"

namespace millrace::test {
namespace {

using namespace std::chrono_literals;

/// A replay policy that a test can look into.
class watched_policy final : public policy {
public:
  explicit watched_policy(replay_policy &inner) : inner_(inner) {}
  bool learns() const noexcept override { return false; }
  status forward(const policy_batch &in, std::span<float> logprobs,
                 std::span<float> entropy) override {
    return inner_.forward(in, logprobs, entropy);
  }
  status backward(const policy_batch &in, std::span<const float> gradient) override {
    return inner_.backward(in, gradient);
  }
  status step(const policy_update &in) override { return inner_.step(in); }
  status save(const std::filesystem::path &folder, std::uint64_t step) override {
    return inner_.save(folder, step);
  }
  result<std::uint64_t> load(const std::filesystem::path &folder) override {
    return inner_.load(folder);
  }
  void reset() override { inner_.reset(); }

private:
  replay_policy &inner_;
};

/// The trainer of a job of one rank, with a checkpoint after every second step.
struct trainer_fixture {
  temporary_folder state;
  actor_world world;
  probe<checkpoint_loaded, step_trained, checkpoint_saved> feeder{world};
  probe<run_failed> supervisor{world};
  replay_policy policy;
  std::vector<std::uint64_t> joined; ///< generations
  std::optional<owned_actor> subject;
  trainer_options options{
      .rank = 0,
      .join = [this](std::uint64_t generation) -> result<std::unique_ptr<collective>> {
        joined.push_back(generation);
        return std::move(make_local_collective(1, 10s)[0]);
      },
      .checkpoints = {.folder = state / "checkpoints", .run = "a run", .policy = "replay"},
      .checkpoint_every = 2};

  trainer_fixture() { begin(); }
  void begin() {
    const auto counters = std::make_shared<run_counters>();
    subject.emplace(world.system().spawn<trainer>(
        world.context(), options,
        std::make_unique<policy_learner>(policy_learner_options{},
                                         std::make_unique<watched_policy>(policy), counters),
        supervisor.actor(), counters));
  }
  /// A trainer that has been told to join.
  void begin_joined(std::uint64_t after) {
    begin();
    load(after);
    join(1);
  }
  void load(std::uint64_t step) { world.tell(*subject, load_checkpoint{step, feeder.actor()}); }
  void join(std::uint64_t generation) {
    world.tell(*subject, begin_training{generation, feeder.actor()});
  }
  void train(std::uint64_t step) { world.tell(*subject, train_step{step, {}, {}}); }
  void train(std::uint64_t first, std::uint64_t last) {
    for (auto step = first; step <= last; ++step)
      train(step);
  }
  bool is_saved(std::uint64_t step) const {
    return std::filesystem::exists(checkpoint_path(options.checkpoints, step));
  }
  std::vector<std::uint64_t> saved() {
    std::vector<std::uint64_t> out;
    for (const auto &one : feeder.got<checkpoint_saved>())
      out.push_back(one.step);
    return out;
  }
  error failure() {
    BOOST_REQUIRE_EQUAL(supervisor.got<run_failed>().size(), 1);
    BOOST_TEST(supervisor.got<run_failed>()[0].who == "trainer-0");
    return supervisor.got<run_failed>()[0].what;
  }
};

using steps = std::vector<std::uint64_t>;

BOOST_FIXTURE_TEST_SUITE(trainers, trainer_fixture)

BOOST_AUTO_TEST_CASE(a_new_trainer_loads_step_0_and_joins_when_it_is_told_to) {
  load(0);
  BOOST_REQUIRE_EQUAL(feeder.got<checkpoint_loaded>().size(), 1);
  BOOST_TEST(feeder.got<checkpoint_loaded>()[0].step == 0U);
  BOOST_TEST(joined.empty());
  join(3);
  BOOST_TEST((joined == steps{3}));
}

BOOST_AUTO_TEST_CASE(a_trained_step_is_told_to_the_feeder) {
  begin_joined(0);
  train(1);
  BOOST_REQUIRE_EQUAL(feeder.got<step_trained>().size(), 1);
  BOOST_TEST(feeder.got<step_trained>()[0].step == 1U);
  BOOST_TEST(policy.steps() == 1U);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_is_written_when_it_is_due_and_then_told) {
  begin_joined(0);
  train(1, 5);
  BOOST_TEST((saved() == steps{2, 4}));
  BOOST_TEST(!is_saved(1));
  BOOST_TEST(is_saved(2));
  BOOST_TEST(is_saved(4));
}

BOOST_AUTO_TEST_CASE(without_checkpoint_every_there_are_none) {
  options.checkpoint_every = 0;
  begin_joined(0);
  train(1, 5);
  BOOST_TEST(saved().empty());
  BOOST_TEST(!std::filesystem::exists(options.checkpoints.folder));
}

BOOST_AUTO_TEST_CASE(a_job_that_starts_again_goes_on_from_its_checkpoint) {
  begin_joined(0);
  train(1, 3);
  const auto undisturbed = policy.digest();
  policy.reset();
  begin();
  load(2);
  BOOST_TEST(feeder.got<checkpoint_loaded>().back().step == 2U);
  BOOST_TEST(policy.steps() == 2U);
  join(2);
  train(3);
  BOOST_TEST((policy.digest() == undisturbed));
}

BOOST_AUTO_TEST_CASE(step_0_is_a_new_policy_whatever_was_there) {
  begin_joined(0);
  train(1, 3);
  begin();
  load(0);
  BOOST_TEST(policy.steps() == 0U);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_that_is_not_there_ends_the_run_with_its_name) {
  load(10);
  const auto why = failure();
  BOOST_TEST((why.code == errc::not_found));
  BOOST_TEST(why.message.find(checkpoint_path(options.checkpoints, 10).string()) !=
                 std::string::npos,
             why.message);
  BOOST_TEST(feeder.got<checkpoint_loaded>().empty());
}

BOOST_AUTO_TEST_CASE(a_checkpoint_that_its_policy_refuses_ends_the_run_with_its_name) {
  const auto folder = checkpoint_folder(options.checkpoints, 10);
  policy_learner other({}, std::make_unique<replay_policy>(), std::make_shared<run_counters>());
  BOOST_REQUIRE(save_checkpoint(options.checkpoints, 10, other.save(folder).value()));
  load(10);
  const auto why = failure();
  BOOST_TEST((why.code == errc::conflict));
  BOOST_TEST(why.message.find("rank-0.ckpt") != std::string::npos, why.message);
}

BOOST_AUTO_TEST_CASE(a_lost_rank_is_told_with_generation_step_operation_and_rank) {
  options.join = [](std::uint64_t) -> result<std::unique_ptr<collective>> {
    return std::move(make_local_collective(2, 10s)[0]); // the other one is gone
  };
  begin();
  load(0);
  join(3);
  train(1);
  const auto why = failure();
  BOOST_TEST((why.code == errc::peer_lost));
  BOOST_TEST(why.message.find("generation 3: step 1: all_gather of what each rank was handed, rank "
                              "0 of 2") == 0U,
             why.message);
}

BOOST_AUTO_TEST_CASE(older_checkpoints_go_when_a_later_one_is_durable) {
  begin_joined(0);
  train(1, 6);
  world.tell(*subject, steps_recorded{6, 4});
  BOOST_TEST(!is_saved(2));
  BOOST_TEST(is_saved(4));
  BOOST_TEST(is_saved(6));
}

BOOST_AUTO_TEST_CASE(the_last_step_is_saved_when_none_follows) {
  begin_joined(0);
  train(1, 3);
  world.tell(*subject, finish_training{3});
  BOOST_TEST((saved() == steps{2, 3}));
  world.tell(*subject, finish_training{3});
  BOOST_TEST((saved() == steps{2, 3}));
}

BOOST_AUTO_TEST_CASE(a_last_step_that_is_saved_already_is_not_saved_again) {
  begin_joined(0);
  train(1, 4);
  world.tell(*subject, finish_training{4});
  BOOST_TEST((saved() == steps{2, 4}));
}

// The steps before the last one wait for a checkpoint that cannot be written yet.
BOOST_AUTO_TEST_CASE(the_word_that_no_step_follows_is_kept_until_the_last_one_is_applied) {
  begin_joined(0);
  {
    const auto before = std::signal(SIGXFSZ, SIG_IGN);
    const file_size_limit full(10);
    train(1, 3);
    world.tell(*subject, finish_training{3});
    std::signal(SIGXFSZ, before);
  }
  BOOST_TEST(saved().empty());
  world.tell(*subject, save_again{});
  BOOST_TEST((saved() == steps{2, 3}));
}

BOOST_AUTO_TEST_CASE(the_word_that_no_step_follows_may_come_before_the_last_one) {
  begin_joined(0);
  train(1, 2);
  world.tell(*subject, finish_training{3});
  train(3);
  BOOST_TEST((saved() == steps{2, 3}));
}

// Else it could say later that it has saved step 4, and all ranks would seem to have step 2.
BOOST_AUTO_TEST_CASE(no_step_follows_a_checkpoint_for_which_there_is_no_space) {
  begin_joined(0);
  {
    const auto before = std::signal(SIGXFSZ, SIG_IGN); // it logs, and stderr may be a file
    const file_size_limit full(10);
    train(1, 4);
    BOOST_TEST(policy.steps() == 2U);
    world.tell(*subject, save_again{});
    BOOST_TEST(policy.steps() == 2U);
    BOOST_TEST(saved().empty());
    BOOST_TEST(supervisor.got<run_failed>().empty());
    std::signal(SIGXFSZ, before);
  }
  world.tell(*subject, save_again{});
  BOOST_TEST((saved() == steps{2, 4}));
  BOOST_TEST(feeder.got<step_trained>().size() == 4U);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_that_cannot_be_written_ends_the_run) {
  BOOST_REQUIRE(write_file_atomically(options.checkpoints.folder, "no folder"));
  begin_joined(0);
  train(1, 2);
  BOOST_TEST((failure().code == errc::io));
}

BOOST_AUTO_TEST_CASE(a_policy_that_fails_ends_the_run_also_if_ranks_could_start_again) {
  options.restarts = true;
  begin_joined(0);
  train(2); // not the one after its last
  BOOST_TEST((failure().code == errc::conflict));
}

// The run has failed: others have said why.
BOOST_AUTO_TEST_CASE(a_trainer_that_is_told_not_to_wait_ends_and_does_not_complain) {
  auto ranks = make_local_collective(2, 600s);
  options.join = [&ranks](std::uint64_t) -> result<std::unique_ptr<collective>> {
    return std::move(ranks[0]);
  };
  options.breaker = std::make_shared<collective_breaker>();
  begin_joined(0);
  options.breaker->break_all("the run has failed");
  train(1);
  BOOST_TEST(feeder.got<step_trained>().empty());
  BOOST_TEST(supervisor.got<run_failed>().empty());
}

enum class other_rank { silent, gone };

/// Step 1 of a job of two ranks, of which the other takes no part.
void lose_the_other(trainer_fixture &here, other_rank how) {
  auto ranks = std::make_shared<std::vector<std::unique_ptr<collective>>>();
  here.options.join = [ranks, how](std::uint64_t) -> result<std::unique_ptr<collective>> {
    *ranks = make_local_collective(2, 50ms);
    if (how == other_rank::gone)
      ranks->at(1).reset();
    return std::move(ranks->at(0));
  };
  here.begin_joined(0);
  here.train(1);
}

BOOST_AUTO_TEST_CASE(a_rank_that_loses_another_ends_the_run_if_nobody_starts_it_again) {
  lose_the_other(*this, other_rank::gone);
  BOOST_TEST((failure().code == errc::peer_lost));
}

BOOST_AUTO_TEST_CASE(a_rank_that_loses_another_is_to_be_started_again_if_somebody_does) {
  options.restarts = true;
  lose_the_other(*this, other_rank::gone);
  BOOST_TEST((failure().code == errc::restart));
  BOOST_TEST(feeder.got<step_trained>().empty());
}

BOOST_AUTO_TEST_CASE(a_rank_that_waits_for_too_long_is_to_be_started_again) {
  options.restarts = true;
  lose_the_other(*this, other_rank::silent);
  const auto why = failure();
  BOOST_TEST((why.code == errc::restart));
  BOOST_TEST(why.message.find("step 1: all_gather of what each rank was handed, rank 0 of 2") !=
                 std::string::npos,
             why.message);
}

BOOST_AUTO_TEST_CASE(a_rank_that_cannot_join_in_time_is_to_be_started_again) {
  options.restarts = true;
  options.join = [](std::uint64_t) -> result<std::unique_ptr<collective>> {
    return fail(errc::timed_out, "rank 1 never came");
  };
  begin_joined(0);
  BOOST_TEST((failure().code == errc::restart));
}

BOOST_AUTO_TEST_CASE(a_rank_whose_own_sockets_fail_ends_the_run) {
  options.restarts = true;
  options.join = [](std::uint64_t) -> result<std::unique_ptr<collective>> {
    return fail(errc::io, "bind: no such address");
  };
  begin_joined(0);
  BOOST_TEST((failure().code == errc::io));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
