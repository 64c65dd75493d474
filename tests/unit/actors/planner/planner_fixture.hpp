// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "actors/planner/planner.hpp"
#include "actors/scorer/annotate.hpp"
#include "tests/support/actors.hpp"
#include "tests/support/groups.hpp"
#include "tests/support/temporary_folder.hpp"

namespace millrace::test {

/// Stand-ins for every peer of a planner of two ranks; a step is one group of two traces.
struct planner_fixture {
  using reader_probe =
      probe<planner_hello, permit, hunger, groups_settled, groups_wanted, planner_progress>;
  using feeder_probe = probe<planner_hello, begin_generation, end_generation, stage_step,
                             commit_step, rank_notice, steps_recorded, finish_training>;
  using assembler_probe = probe<planner_hello, groups_settled, groups_received, groups_wanted>;
  using packer_probe = probe<planner_hello, pack_bin>;

  actor_world world;
  reader_probe reader{world};
  packer_probe packer{world};
  feeder_probe feeder0{world};
  feeder_probe feeder1{world};
  assembler_probe assembler{world};
  assembler_probe other_assembler{world};
  probe<step_done, run_finished, run_failed, run_note, hunger> supervisor{world};
  std::shared_ptr<run_counters> counters = std::make_shared<run_counters>();
  planner_options options = [] {
    planner_options out;
    out.batch.traces = 2;
    out.plan.seq_len = 64;
    out.plan.ranks = 2;
    out.limits.lookahead = 1;
    out.limits.max_backlog_steps = 2;
    out.limits.max_open_groups = 4;
    out.deterministic = true;
    out.memory_limit = 1'000'000;
    return out;
  }();
  temporary_folder state;
  std::array<rank_state, 2> ranks{rank_state{.rank = 0, .next = 1}, {.rank = 1, .next = 1}};
  std::optional<owned_actor> subject;

  /// A planner on the state folder; a second one goes on where the first one stood.
  void begin_alone() {
    if (subject)
      world.end(*subject); // it lets go of the log
    auto log =
        run_log::open(state.path(), {"a run", "a source", "1", "ab", 2}, options.keep, false);
    BOOST_REQUIRE(log);
    subject.emplace(world.system().spawn<planner>(world.context(), options, std::move(*log),
                                                  supervisor.actor(), counters));
  }
  feeder_probe &feeder(std::uint32_t rank) { return rank == 0 ? feeder0 : feeder1; }
  /// Answers what ranks were asked, as ranks do that follow what they are told.
  void ranks_answer() {
    for (bool more = true; std::exchange(more, false);)
      for (auto &rank : ranks) {
        auto &ears = feeder(rank.rank);
        for (const auto &begun : std::exchange(ears.got<begin_generation>(), {})) {
          rank.generation = begun.generation;
          rank.next = begun.next;
        }
        for (const auto &hello : std::exchange(ears.got<planner_hello>(), {})) {
          rank.epoch = hello.claim.epoch;
          world.tell(*subject, rank);
          more = true;
        }
      }
  }
  void up(role what, std::string name, const caf::actor &who) {
    world.tell(*subject, peer_up{what, named(std::move(name), who)});
    ranks_answer();
  }
  void ranks_up() {
    up(role::trainer, "feeder-0", feeder0.actor());
    up(role::trainer, "feeder-1", feeder1.actor());
  }
  void begin() {
    begin_alone();
    up(role::env_reader, "env-reader-0", reader.actor());
    up(role::assembler, "assembler-0", assembler.actor());
    up(role::packer, "packer-0", packer.actor());
    ranks_up();
  }

  /// A group of two episodes with these rewards.
  static frame header(double first, double second,
                      wire::EpisodeStatus status = wire::EpisodeStatus::Ok,
                      std::uint64_t ordinal = 0) {
    auto a = episode_of("a", first, {prompt(-1, 3), turn(0, {1, 1, 1})});
    auto b = episode_of("b", second, {prompt(-1, 3), turn(0, {1, 1})});
    a.finish->status = b.finish->status = status;
    auto members = group_of({a, b});
    members.ordinal = ordinal;
    return header_of(members).bytes();
  }
  void score_from(const peer &holder, std::uint64_t ordinal, frame head) {
    auto annotations =
        annotate(parse<wire::GroupHeader>(head).value(), env_config{}, {}).value().annotations;
    world.tell(*subject,
               group_scored{{ordinal, 0}, std::move(head), std::move(annotations), holder});
  }
  void score(std::uint64_t ordinal, frame head) {
    score_from(assembler.actor(), ordinal, std::move(head));
  }
  /// A group that gives one step of two samples.
  void group(std::uint64_t ordinal) {
    score(ordinal, header(1, 0, wire::EpisodeStatus::Ok, ordinal));
  }
  /// The same once more, from the assembler that took it over.
  void group_moved(std::uint64_t ordinal) {
    score_from(other_assembler.actor(), ordinal, header(1, 0, wire::EpisodeStatus::Ok, ordinal));
  }
  void end(std::uint64_t groups) { world.tell(*subject, source_ended{0, groups}); }

  void stage(std::uint64_t step, std::uint32_t rank) {
    world.tell(*subject, step_staged{step, rank, {{rank, 0, {}}}, 100, ranks[0].epoch});
  }
  void stage(std::uint64_t step) {
    stage(step, 0);
    stage(step, 1);
  }
  void train(std::uint64_t step) {
    for (auto &rank : ranks) {
      rank.trained_to = step;
      world.tell(*subject, step_trained{step, rank.rank, {}});
    }
  }
  std::uint64_t permitted() {
    return reader.got<permit>().empty() ? 0 : reader.got<permit>().back().below;
  }
  /// The ordinals that the bins sent so far draw on, in order.
  std::vector<std::uint64_t> packed() {
    std::vector<std::uint64_t> out;
    for (const auto &bin : packer.got<pack_bin>())
      for (const auto &from : bin.groups)
        if (out.empty() || out.back() != from.group.ordinal)
          out.push_back(from.group.ordinal);
    return out;
  }
  const run_finished &finished() {
    BOOST_REQUIRE_EQUAL(supervisor.got<run_finished>().size(), 1);
    return supervisor.got<run_finished>()[0];
  }
  /// Why the run has ended: one line, said once.
  std::string failure() {
    BOOST_REQUIRE_EQUAL(supervisor.got<run_failed>().size(), 1);
    const auto &why = supervisor.got<run_failed>()[0].what.message;
    BOOST_TEST(why.find('\n') == std::string::npos);
    return why;
  }
};

} // namespace millrace::test
