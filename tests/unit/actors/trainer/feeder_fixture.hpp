// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "actors/packer/gather.hpp"
#include "actors/trainer/feeder.hpp"
#include "tests/support/actors.hpp"
#include "tests/support/episodes.hpp"

namespace millrace::test {

/// The feeder of rank 1, and stand-ins for whom it talks to. It is part of generation 1, which has
/// begun at step 1 under a planner of epoch 7.
struct feeder_fixture {
  using packer_probe = probe<fetch_micro_batch, micro_batch_taken>;
  using planner_probe =
      probe<step_staged, rank_state, planner_refused, rank_notice, step_trained, checkpoint_saved>;

  static constexpr std::uint64_t epoch = 7;

  actor_world world;
  planner_probe planner{world};
  planner_probe other_planner{world};
  probe<train_step, load_checkpoint, begin_training, steps_recorded, finish_training> trainer{
      world};
  probe<run_failed> supervisor{world};
  packer_probe packer{world};
  packer_probe second{world};
  std::vector<rank_notice> noticed;
  std::vector<rank_notice> told;
  std::shared_ptr<run_counters> counters = std::make_shared<run_counters>();
  std::optional<owned_actor> subject;
  std::uint64_t now = epoch; ///< of the planner whose work is done

  feeder_fixture() { begin(UINT64_MAX); }
  void begin(std::uint64_t memory_limit) {
    begin_fresh(memory_limit);
    join(1);
  }
  /// A feeder that has heard nothing yet.
  void begin_fresh(std::uint64_t memory_limit = UINT64_MAX) {
    subject.emplace(world.system().spawn<feeder>(
        world.context(),
        feeder_options{.rank = 1,
                       .memory_limit = memory_limit,
                       .noticed = [this](const rank_notice &in) { noticed.push_back(in); },
                       .told = [this] { return told; }},
        feeder_peers{planner.actor(), trainer.actor(), supervisor.actor()}, counters));
  }
  static digest128 some_digest(std::uint8_t value) {
    digest128 out;
    out.bytes.fill(value);
    return out;
  }
  static planner_claim claim_of(std::uint64_t of_epoch, std::uint8_t folder = 1) {
    return {some_digest(folder), of_epoch};
  }
  void hello(std::uint64_t of_epoch, std::uint64_t durable = 0, std::uint8_t folder = 1) {
    world.tell(*subject, planner_hello{claim_of(of_epoch, folder), durable});
  }
  void loaded(std::uint64_t step) { world.tell(*subject, checkpoint_loaded{step}); }
  void begin_job(std::uint64_t generation, std::uint64_t next) {
    world.tell(*subject, begin_generation{generation, next, claim_of(now)});
  }
  /// From a fresh feeder to a job that begins at step `next`; nothing is kept of it.
  void join(std::uint64_t next) {
    hello(epoch, next - 1);
    loaded(next - 1);
    begin_job(1, next);
    planner.got<rank_state>().clear();
    trainer.got<load_checkpoint>().clear();
    trainer.got<begin_training>().clear();
  }
  bin_ref at(std::uint64_t step, std::uint32_t index) const {
    return {step, 1, index, claim_of(now)};
  }
  peer packer_0() { return named("packer-0", packer.actor()); }
  peer packer_1() { return named("packer-1", second.actor()); }

  /// A micro batch of one sample, whose answer has `tokens` tokens.
  static message parts(const bin_ref &where, std::uint32_t tokens) {
    const std::vector nodes{some_node(0, "user", 3), some_node(1, "assistant", tokens)};
    auto data = some_episode();
    data.nodes = nodes;
    count_whole_episode(data);
    const auto episode = sealed({data});
    const auto views = episode.nodes(0);
    const auto graph = branches_of(std::vector{shape_of(views[0]), shape_of(views[1])}).value();
    bin plan;
    plan.step = where.step;
    plan.rank = where.rank;
    plan.index = where.index;
    plan.samples.resize(1);
    plan.samples[0].nodes = views;
    plan.samples[0].path = &graph.trainable[0];
    plan.samples[0].tokens = 3 + tokens;
    plan.samples[0].env = "math";
    return gather(plan).value();
  }
  void offer(std::uint64_t step, std::uint32_t index, std::uint64_t bytes = 100) {
    offer_from(packer_0(), step, index, bytes);
  }
  void offer_from(const peer &from, std::uint64_t step, std::uint32_t index,
                  std::uint64_t bytes = 100) {
    world.tell(*subject, micro_batch_ready{at(step, index), bytes, from});
  }
  void pack(std::uint64_t step, std::uint32_t index, std::uint32_t tokens = 5) {
    const auto bin = at(step, index);
    world.tell(*subject, micro_batch_packed{bin, parts(bin, tokens)});
  }
  void expect(std::uint64_t step, std::uint32_t count) {
    world.tell(*subject, stage_step{step, count, claim_of(now)});
  }
  void commit(std::uint64_t step, std::uint8_t digest = 5) {
    world.tell(*subject, commit_step{step, some_digest(digest), claim_of(now)});
  }
  /// Up to its commit.
  void make(std::uint64_t step) {
    expect(step, 1);
    pack(step, 0);
    commit(step);
  }
  /// Its trainer has applied it.
  void train(std::uint64_t step) {
    world.tell(*subject, step_trained{step, 1, {static_cast<std::int64_t>(step), 0, 0}});
  }
  void lose(const peer &who) { world.tell(*subject, peer_down{role::packer, who, "a test"}); }

  /// What a packer was asked for, in order.
  static std::vector<bin_ref> asked(packer_probe &who) {
    std::vector<bin_ref> out;
    for (const auto &one : who.got<fetch_micro_batch>())
      out.push_back(one.bin);
    return out;
  }
  static std::vector<bin_ref> taken(packer_probe &who) {
    std::vector<bin_ref> out;
    for (const auto &one : who.got<micro_batch_taken>())
      out.push_back(one.bin);
    return out;
  }
  error failure() {
    BOOST_REQUIRE_EQUAL(supervisor.got<run_failed>().size(), 1);
    BOOST_TEST(supervisor.got<run_failed>()[0].who == "feeder-1");
    return supervisor.got<run_failed>()[0].what;
  }
};

} // namespace millrace::test
