// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "actors/reader/env_reader.hpp"
#include "runtime/file.hpp"
#include "schema/recording_writer.hpp"
#include "tests/support/actors.hpp"
#include "tests/support/episodes.hpp"
#include "tests/support/raw_records.hpp"
#include "tests/support/temporary_folder.hpp"

namespace millrace::test {

inline constexpr std::uint64_t everything = 1'000'000;

/// A recording, readers of it, and stand-ins for whom they talk to.
struct reader_fixture {
  using assembler_probe = probe<frame_arrived, episode_arrived, episode_rejected, group_sized,
                                group_again, source_ended>;

  actor_world world;
  temporary_folder folder;
  assembler_probe left{world};
  assembler_probe right{world};
  probe<permit_wanted, source_ended> planner{world};
  probe<source_report, run_failed> supervisor{world};
  std::shared_ptr<run_counters> counters = std::make_shared<run_counters>();
  std::shared_ptr<quarantine> refused = std::make_shared<quarantine>(folder / "quarantine.jsonl");
  std::optional<recording_writer> file =
      recording_writer::create(folder / "r.mrec", "test").value();
  env_reader_options options = [] {
    env_reader_options out;
    out.vocab_size = 1000;
    return out;
  }();
  std::vector<peer> assemblers{named("assembler-0", left.actor()),
                               named("assembler-1", right.actor())};
  std::vector<std::unique_ptr<owned_actor>> readers;
  std::string raw; ///< records, if not the writer's

  void write(frame_data episode) { BOOST_REQUIRE(file->append(sealed({std::move(episode)}))); }
  void write(const std::string &id, const std::string &group, const std::string &env = "math") {
    write(unsized(id, some_key(env, group)));
  }
  /// An episode that does not say how many its group has.
  static frame_data unsized(const std::string &id, const group_key &key) {
    auto episode = some_episode(id, key);
    episode.group_size = 0;
    return episode;
  }
  /// A record that names its episode and does not parse: its end counts a token too many.
  void write_unparsable(frame_data data) {
    data.finish->tokens += 1;
    const auto body = encode(data).value().at(0);
    flatbuffers::FlatBufferBuilder builder;
    const std::vector extents{wire::Extent(1, 0, body.size())};
    const std::vector frames{wire::CreateSealedFrame(
        builder, builder.CreateVectorOfStructs(extents.data(), extents.size()))};
    const auto index = finish_body<wire::SealedIndex>(
        builder, wire::CreateSealedIndex(builder, builder.CreateVector(frames)));
    raw += raw_record(record_kind::sealed_episode, {index, body});
  }
  void write_raw(const frame_data &data) {
    raw += raw_record(record_kind::sealed_episode, sealed({data}).parts());
  }
  /// What the source holds by other code, and what the reader adds to it: the ledger is held
  /// against both.
  std::uint64_t expected_episodes() {
    auto reader = recording_reader::open(folder / "r.mrec").value();
    return count_recording(reader).episodes + counters->unparsed;
  }
  void write_frame(const frame_data &data) { BOOST_REQUIRE(file->append(parsed(data))); }

  /// Reads what was written, with the permit to begin groups below this.
  void read(std::uint64_t below = everything) {
    if (raw.empty())
      BOOST_REQUIRE(file->finish());
    else
      BOOST_REQUIRE(write_file_atomically(folder / "r.mrec", file_header() + raw));
    for (; options.index < options.count; ++options.index)
      readers.push_back(std::make_unique<owned_actor>(world.system().spawn<env_reader>(
          world.context(), options,
          std::make_unique<recording_source>(recording_reader::open(folder / "r.mrec").value()),
          env_reader_peers{assemblers, planner.actor(), supervisor.actor()}, counters, refused)));
    allow(below);
  }
  template <class Message> void tell_all(const Message &what) {
    for (const auto &reader : readers)
      world.tell(*reader, Message(what));
  }
  void allow(std::uint64_t below) { tell_all(permit{below}); }
  std::vector<std::string> refusals() {
    std::ifstream in(folder / "quarantine.jsonl");
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);)
      lines.push_back(line);
    return lines;
  }
  std::vector<episode_arrived> arrived() {
    auto all = left.got<episode_arrived>();
    all.insert(all.end(), right.got<episode_arrived>().begin(), right.got<episode_arrived>().end());
    return all;
  }
};

} // namespace millrace::test
