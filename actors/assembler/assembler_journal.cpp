// SPDX-License-Identifier: Apache-2.0
// The assembler's journal: what it writes, what rests on it, and what it gives back.
#include <algorithm>
#include <utility>

#include "actors/assembler/assembler.hpp"
#include "runtime/crash_point.hpp"
#include "runtime/log.hpp"

namespace millrace {

namespace {

/// So long may what was written stay unsynced: many messages share one fsync.
constexpr std::chrono::milliseconds flush_within{20};
/// A full disk is tried again so often.
constexpr std::chrono::seconds retry_pause{1};

} // namespace

void assembler::give_up(const error &why) {
  if (!std::exchange(failed_, true))
    tell(peers_.supervisor, run_failed{name(), why});
}

/// What the assembler has taken in goes into the journal; its reader hears of it later.
void assembler::record(arrival what) {
  if (!journal_ || replaying_)
    return;
  auto name = name_of(what);
  unwritten_.push_back({group_of(what), std::move(what), name});
  write_journal();
}

/// A message that comes again: if the journal has it, its reader has not heard so.
void assembler::record_repeat(const safe_message &again) {
  if (!journal_ || !journal_->has(again))
    return;
  unwritten_.push_back({again.group, std::nullopt, again});
  write_journal();
}

/// Until the planner has said whose run it is nothing is written; what it waits for stays with the
/// readers.
void assembler::write_journal() {
  if (failed_ || no_space_ || !journal_->begun())
    return;
  while (!unwritten_.empty()) {
    auto &next = unwritten_.front();
    if (next.what) {
      if (auto written = journal_->append(*next.what); !written) {
        miss_space(written.error());
        return;
      }
    }
    if (next.name)
      unsynced_[next.group.ordinal % options_.readers].push_back(*next.name);
    unwritten_.pop_front();
    if (!std::exchange(flush_due_, true))
      delayed_send(this, flush_within, flush_journal{});
  }
  if (std::exchange(said_no_space_, false)) {
    log::info("{}: there is space for the journal again", name());
    show_wait();
  }
}

/// Nothing is lost: what is not written stays with its reader. The run goes on as without a
/// journal.
void assembler::miss_space(const error &why) {
  if (why.code != errc::no_space) {
    give_up(why);
    return;
  }
  no_space_ = true;
  delayed_send(this, retry_pause, retry_journal{});
  if (std::exchange(said_no_space_, true))
    return;
  log::error("{}: {}: readers keep what they send until there is space", name(), why.message);
  show_wait();
}

void assembler::retry(const retry_journal &) {
  no_space_ = false;
  write_journal();
}

/// Syncs what was written, and tells the readers, who may then forget it.
void assembler::flush(const flush_journal &) {
  flush_due_ = false;
  if (failed_ || !journal_)
    return;
  if (auto synced = journal_->sync(); !synced) {
    give_up(synced.error());
    return;
  }
  for (auto &[reader, messages] : unsynced_) {
    auto &safe = safe_[reader];
    safe.insert(safe.end(), messages.begin(), messages.end());
    messages.clear();
    tell_safe(reader);
  }
}

/// One that is not there yet hears it when it comes.
void assembler::tell_safe(std::uint64_t reader) {
  const auto who = readers_.find(reader);
  if (who == readers_.end())
    return;
  const auto messages = std::exchange(safe_[reader], {});
  for (std::size_t at = 0; at < messages.size(); at += messages_safe::most_messages) {
    const auto end = std::min(messages.size(), at + messages_safe::most_messages);
    tell(who->second, messages_safe{{messages.begin() + static_cast<std::ptrdiff_t>(at),
                                     messages.begin() + static_cast<std::ptrdiff_t>(end)},
                                    self_of(*this)});
    crash_point("assembler.safe.sent");
  }
}

/// What the journal of an earlier start has of groups that are not done. Nobody hears of it before
/// the planner has said whose run it is, and which of them are done.
void assembler::restore() {
  const auto groups = journal_->groups();
  if (groups.empty())
    return;
  for (std::uint32_t reader = 0; reader < options_.readers; ++reader)
    repeating_.insert(reader);
  for (auto ref : groups)
    if (!bring_back(ref))
      return;
  log::info("{}: {} groups are in its journal ({:.1f} MB)", name(), groups.size(),
            static_cast<double>(journal_->bytes()) * 1e-6);
  crash_point("assembler.journal.restored");
}

/// Puts what the journal has of a group back into memory, as mapped bytes. False: it is damaged.
bool assembler::bring_back(group_ref ref) {
  if (groups_.contains(ref) || !journal_->has(ref))
    return true;
  auto messages = journal_->read(ref, counters_->memory);
  if (!messages) {
    give_up(messages.error());
    return false;
  }
  closed_.erase(ref);
  replaying_ = true;
  for (const auto &each : *messages)
    take_again_from_journal(each);
  replaying_ = false;
  if (const auto found = groups_.find(ref); found != groups_.end()) {
    found->second.claimed = false;
    found->second.unoffered = found->second.complete;
  }
  return true;
}

void assembler::take_again_from_journal(const arrival &what) {
  if (const auto *one = std::get_if<frame_arrived>(&what))
    take_frame(*one);
  else if (const auto *episode = std::get_if<episode_arrived>(&what))
    take_episode(*episode);
  else if (const auto *rejected = std::get_if<episode_rejected>(&what))
    take_rejected(*rejected);
  else
    take_size(std::get<group_sized>(what));
}

void assembler::begin_journal() {
  if (auto begun = journal_->begin(planner_.claim().folder); !begun) {
    give_up(begun.error());
    return;
  }
  for (auto &[ref, where] : groups_)
    if (std::exchange(where.unoffered, false))
      offer(ref, where);
  write_journal();
  show_wait();
}

/// What was not written of a group that is done, or in a step, stays with its reader.
void assembler::drop_from_journal(const std::set<group_ref> &ended, bool for_good) {
  if (!journal_)
    return;
  std::erase_if(unwritten_, [&](const auto &one) { return ended.contains(one.group); });
  if (for_good)
    for (auto ref : ended)
      journal_->forget(ref);
}

} // namespace millrace
