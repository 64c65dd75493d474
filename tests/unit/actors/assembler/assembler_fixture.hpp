// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "actors/assembler/assembler.hpp"
#include "tests/support/actors.hpp"
#include "tests/support/episodes.hpp"

namespace millrace::test {

/// An assembler of two readers, and stand-ins for whom it talks to. A group has two episodes.
struct assembler_fixture {
  actor_world world;
  probe<group_complete> scorer{world};
  probe<group_tombstone, group_held> planner{world};
  probe<episodes_fetched> packer{world};
  probe<drained> supervisor{world};
  std::shared_ptr<run_counters> counters = std::make_shared<run_counters>();
  std::shared_ptr<const group_info> pair =
      std::make_shared<group_info>(group_info{some_key(), "test", 2});
  owned_actor subject;

  explicit assembler_fixture(group_deadlines deadlines = {})
      : subject(world.system().spawn<assembler>(
            world.context(),
            assembler_options{.name = "assembler-0",
                              .readers = 2,
                              .seq_len = 100,
                              .deadlines = std::move(deadlines)},
            assembler_peers{
                {named("scorer-0", scorer.actor())}, planner.actor(), supervisor.actor()},
            counters)) {}

  void frame_of(std::uint32_t member, const frame_data &data, std::uint64_t group = 0) {
    world.tell(subject, frame_arrived{{group, 0}, pair, member, parsed(data)});
  }
  void episode(std::uint32_t member, const std::string &id, std::uint32_t attempt = 0,
               std::uint64_t group = 0) {
    auto data = some_episode(id);
    data.attempt = attempt;
    world.tell(subject, episode_arrived{{group, 0}, pair, member, sealed({data})});
  }
  /// All of a group.
  void group(std::uint64_t ordinal) {
    episode(0, "a", 0, ordinal);
    episode(1, "b", 0, ordinal);
  }
  void end(std::uint32_t reader) { world.tell(subject, source_ended{reader, 1}); }

  /// The header of the one group that was completed.
  body<wire::GroupHeader> completed() {
    BOOST_REQUIRE_EQUAL(scorer.got<group_complete>().size(), 1);
    return parse<wire::GroupHeader>(scorer.got<group_complete>()[0].header).value();
  }
  /// The answer to a packer that asks for these members of group 0.
  episodes_fetched fetched(std::vector<std::uint32_t> members) {
    packer.got<episodes_fetched>().clear();
    world.tell(subject, fetch_episodes{{0, 0}, std::move(members), packer.actor(), 1});
    BOOST_REQUIRE_EQUAL(packer.got<episodes_fetched>().size(), 1);
    return packer.got<episodes_fetched>()[0];
  }
};

} // namespace millrace::test
