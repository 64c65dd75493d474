// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "schema/import/import.hpp"

namespace millrace::fuzz {

/// Imports the bytes of a file in memory. Whatever they are: every line is counted in one place,
/// and every episode that comes out passes the checks of the door and reads back.
inline void import_bytes(const std::uint8_t *data, std::size_t size) {
  std::uint64_t episodes = 0;
  std::uint64_t promised = 0;
  import_sink sink;
  sink.group = [&promised](const group_key &, std::uint32_t count) -> status {
    promised += count;
    return {};
  };
  sink.episode = [&episodes](const sealed_episode &episode, const frame &text) -> status {
    ++episodes;
    const auto again = sealed_episode::parse(episode.parts());
    MILLRACE_ASSERT(again, "{}", again.error().message);
    const auto checked = check_elements(*again, {});
    MILLRACE_ASSERT(checked, "{}", checked.error().message);
    const auto body = parse<wire::EpisodeText>(text);
    MILLRACE_ASSERT(body, "{}", body.error().message);
    return {};
  };
  import_options options;
  options.notes = 10;
  const auto done =
      import_text({reinterpret_cast<const char *>(data), size}, "fuzz", options, sink);
  MILLRACE_ASSERT(done, "{}", done.error().message);
  MILLRACE_ASSERT(done->ok + done->errored + done->rejected == episodes && episodes == promised,
                  "{} episodes, {} promised", episodes, promised);
  MILLRACE_ASSERT(episodes + done->refused + done->old_format + done->eval_skipped == done->lines,
                  "{} lines", done->lines);
  (void)done->text();
}

} // namespace millrace::fuzz
