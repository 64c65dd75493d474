// SPDX-License-Identifier: Apache-2.0
#include "schema/import/summary.hpp"

#include <fmt/format.h>

namespace millrace {

namespace {

std::string plural(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

} // namespace

std::string import_summary::text() const {
  std::string out;
  for (const auto &[line, why] : notes)
    out += fmt::format("{}:{}: {}\n", file, line, why);
  if (note_count > notes.size())
    out += fmt::format("{}: and {} more like these\n", file, note_count - notes.size());
  if (old_format > 0)
    out +=
        fmt::format("{}: {} (from line {} to {}) in verifiers' old results format, which is text "
                    "without token ids: record traces.jsonl with verifiers 1 or prime-rl\n",
                    file, plural(old_format, "line"), old_format_first, old_format_last);
  out += fmt::format("{}: {}: {} ok, {} errored, {} refused", file, plural(lines, "record"), ok,
                     errored, rejected + refused + old_format);
  if (rejected > 0)
    out += fmt::format(" ({} of them count in their groups as rejected)", rejected);
  if (eval_skipped > 0)
    out += fmt::format(", {} for evaluation skipped (--eval takes them)", eval_skipped);
  out += fmt::format("; {}, {}, {}\n", plural(groups, "group"), plural(nodes, "node"),
                     plural(tokens, "token"));
  return out;
}

} // namespace millrace
