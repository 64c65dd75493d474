// SPDX-License-Identifier: Apache-2.0
// Between reader and gather nothing copies token arrays. operator new counts here, so this is a
// program of its own.

#include <boost/test/unit_test.hpp>

#include "actors/assembler/assembler.hpp"
#include "actors/packer/bin_sources.hpp"
#include "actors/planner/planner.hpp"
#include "actors/reader/env_reader.hpp"
#include "actors/scorer/scorer.hpp"
#include "runtime/mapping.hpp"
#include "schema/recording_writer.hpp"
#include "tests/support/actors.hpp"
#include "tests/support/counted_new.hpp"
#include "tests/support/episodes.hpp"
#include "tests/support/temporary_folder.hpp"

namespace millrace::test {
namespace {

constexpr std::uint32_t prompt_tokens = 600'000;
constexpr std::uint32_t answer_tokens = 400'000;

/// One group of two sealed episodes with different rewards. Returns the bytes of their token
/// arrays.
std::uint64_t record_a_group(const std::filesystem::path &path) {
  auto file = recording_writer::create(path, "test").value();
  std::uint64_t bytes = 0;
  for (int i = 0; i < 2; ++i) {
    auto data = some_episode(fmt::format("e{}", i));
    data.nodes = {some_node(0, "user", prompt_tokens), some_node(1, "assistant", answer_tokens)};
    data.finish->traces[0].reward = i;
    count_whole_episode(data);
    for (const auto &node : data.nodes)
      bytes += node.token_ids.size() * 5 + node.logprobs.size() * 4;
    BOOST_REQUIRE(file.append(sealed({data})));
  }
  BOOST_REQUIRE(file.finish());
  return bytes;
}

bool inside(const frame &mapping, const void *data, std::size_t size) {
  const auto *begin = static_cast<const std::byte *>(data);
  return begin >= mapping.data() && begin + size <= mapping.data() + mapping.size();
}

/// The packer of this test: keeps the bins, and fetches what they need.
struct packer_fixture {
  actor_world world;
  temporary_folder folder;
  probe<pack_bin> packer{world};
  probe<episodes_fetched> fetched{world};
  probe<stage_step> feeder{world};
  probe<source_report, run_failed, step_done, run_finished, run_note, hunger> supervisor{world};
  std::shared_ptr<run_counters> counters = std::make_shared<run_counters>();
};

BOOST_FIXTURE_TEST_CASE(what_gather_reads_lies_in_the_mapping_and_little_is_allocated_before_it,
                        packer_fixture) {
  const auto path = folder / "r.mrec";
  const auto token_bytes = record_a_group(path);
  const auto mapping = map_file(path).value();
  auto file = recording_reader::over(mapping, "r.mrec").value();
  planner_options options;
  options.batch.traces = 2;
  options.plan.seq_len = 2'000'000;
  options.memory_limit = 1'000'000;

  auto log =
      run_log::open(folder.path(), {"run", "r.mrec", "1", "", 1}, options.keep, false).value();
  const auto before = allocated_bytes();
  auto &system = world.system();
  const owned_actor plan(system.spawn<planner>(world.context(), options, std::move(log),
                                               supervisor.actor(), counters));
  const owned_actor score(
      system.spawn<scorer>(world.context(), "scorer-0", std::make_shared<run_config>(),
                           scorer_peers{caf::actor(plan), supervisor.actor()}, counters));
  const owned_actor assemble(system.spawn<assembler>(
      world.context(), assembler_options{"assembler-0", 1, options.plan.seq_len},
      assembler_peers{{named("scorer-0", score)}, caf::actor(plan), supervisor.actor()}, counters));
  env_reader_options reading;
  reading.vocab_size = 2'000'000;
  const owned_actor read(system.spawn<env_reader>(
      world.context(), reading, std::make_unique<recording_source>(std::move(file)),
      env_reader_peers{{named("assembler-0", assemble)}, caf::actor(plan), supervisor.actor()},
      counters, std::make_shared<quarantine>(folder / "q")));
  world.tell(plan, peer_up{role::env_reader, named("env-reader-0", read)});
  world.tell(plan, peer_up{role::packer, named("packer-0", packer.actor())});
  world.tell(plan, peer_up{role::trainer, named("feeder-0", feeder.actor())});
  world.tell(plan, rank_state{.rank = 0, .epoch = 1, .next = 1});
  world.tell(plan, rank_state{.rank = 0, .epoch = 2, .generation = 1, .next = 1});

  std::uint64_t checked = 0;
  for (const auto &bin : packer.got<pack_bin>()) {
    const auto table = parse<wire::BinPlan>(bin.plan).value();
    const auto needed = episodes_needed(*table).value();
    std::vector<fetched_group> groups;
    for (std::size_t g = 0; g < needed.size(); ++g) {
      tell(bin.groups[g].assembler,
           fetch_episodes{bin.groups[g].group, needed[g], fetched.actor(), 1});
      world.run();
      const auto answer = fetched.got<episodes_fetched>().back();
      groups.push_back({parse<wire::GroupAnnotations>(bin.groups[g].annotations).value(), {}});
      for (std::size_t i = 0; i < needed[g].size(); ++i)
        groups.back().episodes.emplace(needed[g][i], answer.episodes[i]);
    }
    const auto sources = make_bin_sources(*table, groups).value();
    for (const auto &sample : sources.plan.samples)
      for (const auto &node : sample.nodes) {
        BOOST_TEST(inside(mapping, node.token_ids.data(), node.token_ids.size_bytes()));
        BOOST_TEST(inside(mapping, node.mask.data(), node.mask.size_bytes()));
        BOOST_TEST((node.logprobs.empty() ||
                    inside(mapping, node.logprobs.data(), node.logprobs.size_bytes())));
        checked +=
            node.token_ids.size_bytes() + node.mask.size_bytes() + node.logprobs.size_bytes();
      }
  }
  const auto spent = allocated_bytes() - before;
  BOOST_TEST(checked == token_bytes);
  BOOST_TEST(spent * 100 < token_bytes);
  BOOST_TEST(counters->memory->copied == 0U);
}

} // namespace
} // namespace millrace::test
