// SPDX-License-Identifier: Apache-2.0
#include "actors/progress.hpp"

#include <ostream>

#include <fmt/format.h>

namespace millrace {

namespace {
constexpr std::chrono::milliseconds on_terminal{200};
constexpr std::chrono::seconds elsewhere{5};
constexpr std::string_view erase_line = "\r\x1b[2K";
} // namespace

progress::progress(std::ostream &out, bool is_terminal, const run_counters &counters)
    : out_(out), is_terminal_(is_terminal), counters_(counters), last_(clock::now()) {}

std::string progress::state() {
  const auto now = clock::now();
  const std::chrono::duration<double> gone = now - last_;
  const auto tokens = counters_.tokens.load();
  const auto rate =
      gone.count() > 0 ? static_cast<double>(tokens - last_tokens_) / gone.count() : 0;
  last_ = now;
  last_tokens_ = tokens;
  // Readers, assemblers and scorers may be in other processes, which say it themselves.
  std::string out;
  if (counters_.episodes != 0)
    out = fmt::format("read {} episodes, {:.1f}M tokens, {:.1f}M tokens/s | groups open {}, "
                      "scored {} | ",
                      counters_.episodes.load(), static_cast<double>(tokens) / 1e6, rate / 1e6,
                      counters_.groups_open.load(), counters_.groups_scored.load());
  return out + fmt::format("waiting {} traces | steps cut {}, trained {} | held {:.0f} MB",
                           counters_.backlog_traces.load(), counters_.steps_cut.load(),
                           counters_.steps_trained.load(),
                           static_cast<double>(counters_.memory->held.load()) / 1e6);
}

void progress::tick() {
  const auto gone = clock::now() - last_;
  if (is_terminal_ && gone >= on_terminal) {
    out_ << erase_line << state() << std::flush;
    drawn_ = true;
  } else if (!is_terminal_ && gone >= elsewhere) {
    out_ << state() << '\n' << std::flush;
  }
}

void progress::line(const std::string &text) {
  clear();
  out_ << text << '\n' << std::flush;
}

void progress::clear() {
  if (drawn_)
    out_ << erase_line << std::flush;
  drawn_ = false;
}

} // namespace millrace
