// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/node/feed_messages.hpp"
#include "actors/node/wait_board.hpp"
#include "runtime/frame.hpp"
#include "runtime/result.hpp"
#include "transport/hub.hpp"

namespace millrace {

/// A step as trainers in Python are handed it.
struct feed_step {
  std::uint64_t number = 0;
  digest128 digest;
  std::int64_t rl_tokens = 0, ce_tokens = 0, ref_kl_tokens = 0;
  std::vector<message> micro_batches; ///< by index, as they are on the wire
};

struct feed_desk_options {
  std::uint32_t rank = 0;
  std::uint32_t peers = 1; ///< processes that share the rank
  /// Who was not heard for so long is gone.
  std::chrono::milliseconds patience{10'000};
  /// The process is started again when somebody is lost: then they are to be, too.
  bool restarts = false;
};

/// Where the trainer of a rank, in its own thread, and processes in Python, by questions that come
/// over the hub, meet. Each of the `peers` has a seat, which belongs to whoever asks for it first.
/// Whoever leaves, or is silent, before it has heard of the generation makes room for another one;
/// later that ends the generation, since nobody else has its weights.
///
/// Nothing is kept for who is gone: a question that has no answer yet waits until it has one, or
/// until its asker asks the same again, so that a seat keeps at most two.
/// Thread: any. ask() never waits; the others block the caller until all seats have done it, the
/// run is over, or someone is gone (timed_out: peer_lost would be taken for an echo of another
/// loss), which ends it for all of them.
class feed_desk {
public:
  using clock = std::chrono::steady_clock;
  using reply = std::function<void(request_id, message)>;

  /// @param answer sends an answer; called under the lock of the desk.
  /// @param waits may be null.
  feed_desk(feed_desk_options options, reply answer, std::shared_ptr<wait_board> waits);

  /// Answers now or later, once.
  void ask(request_id request, const feed_question &in, clock::time_point now = clock::now());

  /// Until every seat is taken. No deadline: it is shown as a wait.
  status wait_for_all();
  /// A generation begins, after step `resume`. @param folder of its checkpoint.
  void begin(std::uint64_t generation, std::uint64_t resume, std::string folder);
  /// Until all have trained it. Precondition: it is the one after the last.
  status train(feed_step step);
  /// Until all have a checkpoint of the last step. @param folder for their files.
  status save(std::string folder);

  /// The run is over; without a failure, after a good end. The first call counts.
  void end(const std::optional<error> &failure);
  /// Until all who have a seat and are not silent have heard of the end.
  void wait_until_heard(clock::time_point deadline);

private:
  enum class waits_for { seats, trained, durable };

  struct seat {
    std::uint64_t asker = 0; ///< 0: free
    clock::time_point heard{};
    std::uint64_t generation = 0; ///< that it has heard of
    std::uint64_t trained = 0;
    std::uint64_t durable = 0;
    bool told_end = false;
    std::optional<std::pair<request_id, feed_question>> next; ///< a question that waits
    std::optional<request_id> here;                           ///< the same
  };

  // With mutex_ held.
  std::string refusal(const feed_question &in, clock::time_point now);
  void answer(request_id request, seat &at, const feed_question &in);
  std::optional<feed_answer> news_for(const seat &at, const feed_question &in) const;
  feed_answer end_answer() const;
  feed_answer note_trained(seat &at, std::uint64_t step) const;
  feed_answer note_durable(seat &at, std::uint64_t step) const;
  void give_micro_batch(request_id request, const feed_question &in);
  void leave(seat &at, const feed_question &in);
  void give_up_seat(seat &at, std::string_view why);
  void say(request_id request, const feed_answer &what, const message &parts = {});
  void tell_all();
  void tell_end(seat &at);
  void finish(const std::optional<error> &failure);
  status wait(std::unique_lock<std::mutex> &lock, waits_for what);
  bool is_done(const seat &at, waits_for what) const;
  bool take_silent(clock::time_point now);
  void show(waits_for what, std::size_t missing) const;
  bool is_silent(const seat &at, clock::time_point now) const;
  clock::time_point silent_from(const seat &at) const;
  std::string name_of(const seat &at) const;
  std::string doing() const;

  const feed_desk_options options_;
  const reply answer_;
  const std::shared_ptr<wait_board> waits_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<seat> seats_;
  std::uint64_t generation_ = 0; ///< 0: none has begun
  std::uint64_t resume_ = 0;
  std::string resume_folder_;
  std::uint64_t last_ = 0; ///< the last step that all have trained, or that was loaded
  std::optional<feed_step> step_;
  std::uint64_t save_ = 0; ///< a checkpoint of it is wanted; 0: of none
  std::string save_folder_;
  bool over_ = false;
  std::optional<error> failure_; ///< none: it ended well
};

} // namespace millrace
