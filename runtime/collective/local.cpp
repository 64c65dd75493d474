// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/local.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace millrace {

namespace {

/// Where the threads meet. An exchange is a round: the last rank to come turns `arriving_` into
/// `gathered_` and wakes the others. A round cannot be overtaken: the next one is over only when
/// every rank has come to it, so after it has taken its result of this one.
class meeting {
public:
  meeting(int size, std::chrono::milliseconds deadline)
      : deadline_(deadline), came_(static_cast<std::size_t>(size), false) {}

  status exchange(std::size_t rank, std::span<const std::byte> mine, std::span<std::byte> all) {
    std::unique_lock lock(mutex_);
    if (broken_)
      return tl::unexpected<error>(*broken_);
    arriving_.resize(all.size());
    std::copy(mine.begin(), mine.end(),
              arriving_.begin() + static_cast<std::ptrdiff_t>(rank * mine.size()));
    came_[rank] = true;
    const auto round = round_;
    if (std::find(came_.begin(), came_.end(), false) == came_.end())
      finish_round();
    const bool woken =
        changed_.wait_for(lock, deadline_, [&] { return round_ != round || broken_; });
    if (!woken)
      break_off({errc::timed_out,
                 fmt::format("no word from rank {} within {} ms", missing(), deadline_.count())});
    if (round_ == round)
      return tl::unexpected<error>(*broken_);
    std::copy(gathered_.begin(), gathered_.end(), all.begin());
    return {};
  }

  void abort(error why) {
    const std::lock_guard lock(mutex_);
    break_off(std::move(why));
  }

private:
  void finish_round() {
    gathered_.swap(arriving_);
    came_.assign(came_.size(), false);
    ++round_;
    changed_.notify_all();
  }

  void break_off(error why) {
    if (!broken_)
      broken_ = std::move(why);
    changed_.notify_all();
  }

  std::string missing() const {
    std::string ranks;
    for (std::size_t i = 0; i < came_.size(); ++i)
      if (!came_[i])
        ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", i);
    return ranks;
  }

  const std::chrono::milliseconds deadline_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> came_;
  std::vector<std::byte> arriving_;
  std::vector<std::byte> gathered_;
  std::uint64_t round_ = 0;
  std::optional<error> broken_;
};

class local_collective final : public collective {
public:
  local_collective(int rank, int size, std::shared_ptr<meeting> where)
      : collective(rank, size), meeting_(std::move(where)) {}
  ~local_collective() override {
    meeting_->abort({errc::peer_lost, fmt::format("rank {} has left", rank())});
  }

  void abort(std::string_view reason) noexcept override {
    meeting_->abort({errc::peer_lost, fmt::format("rank {} aborted: {}", rank(), reason)});
  }

protected:
  status exchange(std::span<const std::byte> mine, std::span<std::byte> all) override {
    return meeting_->exchange(static_cast<std::size_t>(rank()), mine, all);
  }

private:
  std::shared_ptr<meeting> meeting_;
};

} // namespace

std::vector<std::unique_ptr<collective>> make_local_collective(int size,
                                                               std::chrono::milliseconds deadline) {
  const auto where = std::make_shared<meeting>(size, deadline);
  std::vector<std::unique_ptr<collective>> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.push_back(std::make_unique<local_collective>(rank, size, where));
  return ranks;
}

} // namespace millrace
