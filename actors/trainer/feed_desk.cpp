// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/feed_desk.hpp"

#include <algorithm>

#include "actors/node/host_codec.hpp"

namespace millrace {

namespace {

feed_answer refused(std::string why) {
  feed_answer out;
  out.state = feed_state::refused;
  out.reason = std::move(why);
  return out;
}

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

} // namespace

feed_desk::feed_desk(feed_desk_options options, reply answer, std::shared_ptr<wait_board> waits)
    : options_(options), answer_(std::move(answer)), waits_(std::move(waits)),
      seats_(options.peers) {}

// ---- questions

void feed_desk::ask(request_id request, const feed_question &in, clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (auto why = refusal(in, now); !why.empty()) {
    say(request, refused(std::move(why)));
    return;
  }
  auto &at = seats_[in.peer];
  if (at.asker == 0) {
    at = {};
    at.asker = in.asker;
    changed_.notify_all();
  }
  at.heard = now;
  answer(request, at, in);
}

/// Why a question is not taken; empty: it is.
std::string feed_desk::refusal(const feed_question &in, clock::time_point now) {
  if (in.peers != options_.peers)
    return fmt::format("trainer.peers is {} here, and {} there", options_.peers, in.peers);
  if (in.peer >= options_.peers)
    return fmt::format("there is no peer {}: trainer.peers = {}", in.peer, options_.peers);
  auto &at = seats_[in.peer];
  if (at.asker == in.asker)
    return {};
  if (in.wish == feed_wish::leave)
    return "it has left already";
  if (at.asker != 0 && !is_silent(at, now))
    return fmt::format("another process is {}: it was heard {:.1f} s ago", name_of(at),
                       seconds(now - at.heard));
  if (at.asker != 0)
    take_silent(now);
  return {};
}

void feed_desk::answer(request_id request, seat &at, const feed_question &in) {
  if (over_) {
    at.told_end = true;
    changed_.notify_all();
    say(request, end_answer());
    return;
  }
  switch (in.wish) {
  case feed_wish::here:
    if (const auto before = std::exchange(at.here, request))
      say(*before, {});
    return;
  case feed_wish::next:
    if (const auto before = std::exchange(at.next, std::nullopt))
      say(before->first, {});
    at.next = {request, in};
    tell_all();
    return;
  case feed_wish::micro_batch:
    give_micro_batch(request, in);
    return;
  case feed_wish::trained:
    say(request, note_trained(at, in.step));
    changed_.notify_all();
    return;
  case feed_wish::durable:
    say(request, note_durable(at, in.step));
    changed_.notify_all();
    return;
  case feed_wish::leave:
    say(request, {});
    leave(at, in);
    return;
  }
}

/// What comes after that which an asker knows; nothing: it waits.
std::optional<feed_answer> feed_desk::news_for(const seat &at, const feed_question &in) const {
  feed_answer out;
  out.generation = generation_;
  if (in.generation < generation_) {
    out.state = feed_state::begin;
    out.step = resume_;
    out.folder = resume_folder_;
    return out;
  }
  if (step_ && in.step < step_->number && at.trained < step_->number) {
    out.state = feed_state::step;
    out.step = step_->number;
    out.digest = step_->digest;
    out.rl_tokens = step_->rl_tokens;
    out.ce_tokens = step_->ce_tokens;
    out.ref_kl_tokens = step_->ref_kl_tokens;
    out.micro_batches = static_cast<std::uint32_t>(step_->micro_batches.size());
    return out;
  }
  if (save_ != 0 && at.durable < save_) {
    out.state = feed_state::save;
    out.step = save_;
    out.folder = save_folder_;
    return out;
  }
  return std::nullopt;
}

feed_answer feed_desk::end_answer() const {
  feed_answer out;
  out.state = failure_ ? feed_state::failed : feed_state::ended;
  if (failure_) {
    out.reason = failure_->message;
    out.restart = failure_->code == errc::restart ||
                  (options_.restarts &&
                   (failure_->code == errc::peer_lost || failure_->code == errc::timed_out));
  }
  return out;
}

/// Once more is fine.
feed_answer feed_desk::note_trained(seat &at, std::uint64_t step) const {
  if (step_ && step == step_->number)
    at.trained = step;
  if (step == at.trained)
    return {};
  return refused(
      fmt::format("step {} was not handed out last, {} was", step, step_ ? step_->number : last_));
}

feed_answer feed_desk::note_durable(seat &at, std::uint64_t step) const {
  if (step > at.trained)
    return refused(
        fmt::format("step {} cannot be durable: {} steps are trained", step, at.trained));
  at.durable = std::max(at.durable, step);
  return {};
}

void feed_desk::give_micro_batch(request_id request, const feed_question &in) {
  if (!step_ || in.step != step_->number || in.index >= step_->micro_batches.size()) {
    say(request,
        refused(fmt::format("there is no micro batch {} of step {} here", in.index, in.step)));
    return;
  }
  feed_answer about;
  about.state = feed_state::micro_batch;
  about.step = in.step;
  say(request, about, step_->micro_batches[in.index]);
}

void feed_desk::leave(seat &at, const feed_question &in) {
  if (at.generation != 0 && at.generation == generation_)
    finish(
        error{errc::timed_out, fmt::format("{} has left in {}: {}", name_of(at), doing(),
                                           in.reason.empty() ? "it did not say why" : in.reason)});
  else
    give_up_seat(at, "it has left");
}

/// Another process may have it.
void feed_desk::give_up_seat(seat &at, std::string_view why) {
  if (at.here)
    say(*at.here, refused(std::string(why)));
  if (at.next)
    say(at.next->first, refused(std::string(why)));
  at = {};
  changed_.notify_all();
}

void feed_desk::say(request_id request, const feed_answer &what, const message &parts) {
  auto out = encode(host_parcel{what});
  out.insert(out.end(), parts.begin(), parts.end());
  answer_(request, std::move(out));
}

/// Answers the questions that have an answer by now.
void feed_desk::tell_all() {
  for (auto &at : seats_) {
    if (!at.next)
      continue;
    const auto news = news_for(at, at.next->second);
    if (!news)
      continue;
    if (news->state == feed_state::begin)
      at.generation = generation_;
    say(at.next->first, *news);
    at.next.reset();
  }
}

void feed_desk::tell_end(seat &at) {
  if (at.next)
    say(at.next->first, end_answer());
  if (at.here)
    say(*at.here, end_answer());
  at.told_end = at.told_end || at.next || at.here;
  at.next.reset();
  at.here.reset();
}

// ---- the trainer's side

status feed_desk::wait_for_all() {
  std::unique_lock lock(mutex_);
  return wait(lock, waits_for::seats);
}

void feed_desk::begin(std::uint64_t generation, std::uint64_t resume, std::string folder) {
  const std::lock_guard lock(mutex_);
  generation_ = generation;
  resume_ = last_ = resume;
  resume_folder_ = std::move(folder);
  for (auto &at : seats_)
    at.trained = at.durable = resume;
  tell_all();
}

status feed_desk::train(feed_step step) {
  std::unique_lock lock(mutex_);
  const auto number = step.number;
  if (number != last_ + 1)
    return fail(errc::conflict, "step {} was handed to Python after step {}", number, last_);
  step_ = std::move(step);
  tell_all();
  auto done = wait(lock, waits_for::trained);
  step_.reset();
  if (done)
    last_ = number;
  return done;
}

status feed_desk::save(std::string folder) {
  std::unique_lock lock(mutex_);
  save_ = last_;
  save_folder_ = std::move(folder);
  tell_all();
  auto done = wait(lock, waits_for::durable);
  save_ = 0;
  return done;
}

void feed_desk::end(const std::optional<error> &failure) {
  const std::lock_guard lock(mutex_);
  finish(failure);
}

/// Precondition: mutex_ is held.
void feed_desk::finish(const std::optional<error> &failure) {
  if (std::exchange(over_, true))
    return;
  failure_ = failure;
  for (auto &at : seats_)
    tell_end(at);
  changed_.notify_all();
}

void feed_desk::wait_until_heard(clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  for (auto now = clock::now(); now < deadline; now = clock::now()) {
    auto until = deadline;
    bool all_know = true;
    for (const auto &at : seats_)
      if (at.asker != 0 && !at.told_end && !is_silent(at, now)) {
        all_know = false;
        until = std::min(until, silent_from(at));
      }
    if (all_know)
      return;
    changed_.wait_until(lock, until);
  }
}

bool feed_desk::is_silent(const seat &at, clock::time_point now) const {
  return now >= silent_from(at);
}

feed_desk::clock::time_point feed_desk::silent_from(const seat &at) const {
  return at.heard + options_.patience;
}

bool feed_desk::is_done(const seat &at, waits_for what) const {
  switch (what) {
  case waits_for::seats:
    return at.asker != 0;
  case waits_for::trained:
    return step_ && at.trained >= step_->number;
  case waits_for::durable:
    return at.durable >= save_;
  }
  return false;
}

/// Deals with those who were not heard for too long. True: there was one.
bool feed_desk::take_silent(clock::time_point now) {
  for (auto &at : seats_) {
    if (at.asker == 0 || !is_silent(at, now))
      continue;
    if (generation_ == 0 || at.generation != generation_)
      give_up_seat(at, "nothing was heard of it for too long");
    else
      finish(error{errc::timed_out, fmt::format("{} is gone: nothing heard for {:.1f} s in {}",
                                                name_of(at), seconds(now - at.heard), doing())});
    return true;
  }
  return false;
}

status feed_desk::wait(std::unique_lock<std::mutex> &lock, waits_for what) {
  while (!over_) {
    const auto missing = static_cast<std::size_t>(
        std::ranges::count_if(seats_, [&](const seat &at) { return !is_done(at, what); }));
    if (missing == 0)
      return {};
    if (take_silent(clock::now()))
      continue;
    show(what, missing);
    auto until = clock::time_point::max();
    for (const auto &at : seats_)
      if (at.asker != 0)
        until = std::min(until, silent_from(at));
    if (until == clock::time_point::max())
      changed_.wait(lock);
    else
      changed_.wait_until(lock, until);
  }
  return tl::unexpected(failure_.value_or(error{errc::peer_lost, "the run is over"}));
}

void feed_desk::show(waits_for what, std::size_t missing) const {
  if (!waits_)
    return;
  const auto who = options_.peers == 1
                       ? std::string("the Python trainer")
                       : fmt::format("{} of {} Python trainers", missing, options_.peers);
  const bool attach = std::ranges::any_of(seats_, [](const seat &at) { return at.asker == 0; });
  std::string text;
  if (attach)
    text = (options_.peers == 1 ? std::string("a Python trainer") : who) + " to attach";
  else if (what == waits_for::trained)
    text = fmt::format("{} in step {}", who, last_ + 1);
  else
    text = fmt::format("{} to save step {}", who, save_);
  waits_->set(fmt::format("trainer-{}", options_.rank),
              fmt::format("python {} {} {}", attach, static_cast<int>(what), last_), text, "");
}

std::string feed_desk::name_of(const seat &at) const {
  const auto peer = &at - seats_.data();
  return fmt::format("the Python trainer of rank {}{}", options_.rank,
                     options_.peers == 1 ? "" : fmt::format(", peer {}", peer));
}

std::string feed_desk::doing() const {
  if (step_)
    return fmt::format("step {}", step_->number);
  if (save_ != 0)
    return fmt::format("the checkpoint of step {}", save_);
  return fmt::format("the time after step {}", last_);
}

} // namespace millrace
