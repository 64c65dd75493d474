// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "actors/assembler/journal.hpp"
#include "tests/support/episodes.hpp"
#include "tests/support/temporary_folder.hpp"

namespace millrace::test {

inline digest128 some_folder(std::uint8_t first = 7) {
  digest128 out;
  out.bytes[0] = first;
  return out;
}

inline journal_options journal_in(const std::filesystem::path &folder,
                                  std::uint64_t segment_bytes = 1 << 20) {
  return {.folder = folder,
          .run = "run-1",
          .assembler = "assembler-0",
          .sync = false,
          .segment_bytes = segment_bytes};
}

inline std::shared_ptr<const group_info> info_for(std::uint64_t ordinal, std::uint32_t size = 2) {
  return std::make_shared<group_info>(
      group_info{some_key("math", fmt::format("g{}", ordinal)), "test", size});
}

/// A message of each kind for a group, in an order in which a reader may send them.
inline std::vector<arrival> arrivals_of(std::uint64_t ordinal) {
  const auto info = info_for(ordinal);
  const auto frames = some_episode_in_two("a", info->key);
  return {frame_arrived{{ordinal, 0}, info_for(ordinal, 0), 0, parsed(frames[0])},
          group_sized{{ordinal, 0}, info}, frame_arrived{{ordinal, 0}, info, 0, parsed(frames[1])},
          episode_arrived{{ordinal, 0}, info, 2, sealed({some_episode("c", info->key)})},
          episode_rejected{{ordinal, 0}, info, 1, "b", 3, "no good"}};
}

/// All of a message, as text.
inline std::string text_of(const arrival &what) {
  const auto &info = *info_of(what);
  auto out = fmt::format("{}: {}, group {} of {}, {} of {}\n", what.index(), group_of(what).ordinal,
                         info.key.text(), info.key.run, info.source, info.size);
  if (const auto name = name_of(what))
    out += fmt::format("{} {} {}\n", name->member, name->attempt, name->frame);
  if (const auto *in = std::get_if<episode_rejected>(&what))
    out += in->id + in->reason;
  for (const auto &part : body_of(what).parts) {
    out += std::to_string(part.size()) + ':';
    out.append(reinterpret_cast<const char *>(part.data()), part.size());
  }
  return out;
}
inline std::vector<std::string> texts_of(const std::vector<arrival> &all) {
  std::vector<std::string> out;
  for (const auto &one : all)
    out.push_back(text_of(one));
  return out;
}

/// Everything that a journal has, by group.
inline std::vector<std::string> contents_of(journal &from) {
  std::vector<std::string> out;
  for (auto ref : from.groups()) {
    const auto found = from.read(ref).value();
    for (const auto &one : found)
      out.push_back(text_of(one));
  }
  return out;
}

inline std::unique_ptr<journal> begun_journal(const journal_options &how) {
  auto out = journal::open(how);
  BOOST_REQUIRE_MESSAGE(out, out.error().message);
  BOOST_REQUIRE((*out)->begin(some_folder()));
  return std::move(*out);
}

} // namespace millrace::test
