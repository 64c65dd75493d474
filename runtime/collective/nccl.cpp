// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/nccl.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gloo/rendezvous/store.h>

#include "runtime/collective/nccl_communicator.cuh"
#include "runtime/device/cuda/device.hpp"

namespace millrace {

namespace {

using time_point = std::chrono::steady_clock::time_point;

/// How long a rank that has left may still be sending, and how long NCCL may take to end.
constexpr std::chrono::seconds grace(5);
/// What is published of a rank that ends begins so: it is done, or it has given up.
constexpr std::string_view left = "done;";
constexpr std::string_view gave_up = "over;";

/// What the store said, without the place in Gloo's sources that it puts before it.
error store_error(const std::exception &why) {
  std::string_view text = why.what();
  if (const auto end = text.find("] "); text.starts_with('[') && end != text.npos)
    text.remove_prefix(end + 2);
  const bool late = text.find("imeout") != text.npos || text.find("imed out") != text.npos;
  return {late ? errc::timed_out : errc::peer_lost, std::string(text)};
}

result<bool> has_passed(const cuda_event &event) {
  const auto state = cudaEventQuery(event.get());
  if (state == cudaErrorNotReady)
    return false;
  MILLRACE_TRY(cuda_status(state, "cudaEventQuery"));
  return true;
}

/// NCCL hears of a rank that has gone only where it speaks to it over a network, so ranks also tell
/// each other over the store, in one key: the first of them that ends writes it, and all wait for
/// it.
class nccl_collective final : public collective {
public:
  nccl_collective(const nccl_options &options, gloo_store store,
                  std::shared_ptr<const nccl_library> calls)
      : collective(options.rank, options.size), deadline_(options.deadline),
        join_deadline_(options.join_deadline), prefix_(options.prefix + "/nccl/"),
        store_(std::move(store)),
        communicator_(std::make_unique<nccl_communicator>(std::move(calls), options.device)),
        listener_([this] { listen(); }) {}

  ~nccl_collective() override {
    tell(left, "has left");
    give_up(std::move(communicator_), joined_ && !is_broken(), grace);
  }

  /// Meets the others.
  status join() {
    auto done = connect(std::chrono::steady_clock::now() + join_deadline_);
    if (!done)
      break_off(done.error(), done.error().message);
    joined_ = done.has_value();
    return done;
  }

  void abort(std::string_view reason) noexcept override {
    break_off({errc::peer_lost, fmt::format("rank {} aborted: {}", rank(), reason)}, reason);
  }

protected:
  status exchange(std::span<const std::byte> mine, std::span<std::byte> all) override {
    {
      const std::lock_guard lock(mutex_);
      if (!broken_ && leaving_)
        broken_ = leaving_; // it will not come to this one
      if (broken_)
        return tl::unexpected<error>(*broken_);
    }
    if (auto done = transfer(mine, all); !done) {
      break_off(done.error(), done.error().message);
      // From the thread that makes all calls on it, so that none of them is under way. A kernel of
      // it that waits for a rank occupies the GPU until then.
      give_up(std::move(communicator_), false, grace);
      const std::lock_guard lock(mutex_);
      return tl::unexpected<error>(*broken_);
    }
    return {};
  }

private:
  status connect(time_point end) {
    auto &own = *communicator_;
    MILLRACE_TRY(own.open());
    auto id = meet(end);
    if (!id)
      return tl::unexpected<error>(std::move(id).error());
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0; // every call returns, and says later how it went
    MILLRACE_TRY(
        own.check(own.calls->comm_init_rank_config(&own.handle, size(), *id, rank(), &config),
                  "ncclCommInitRankConfig"));
    return settle("ncclCommInitRankConfig", end);
  }

  /// The id of this job's communicator: rank 0 makes it, the store carries it.
  result<ncclUniqueId> meet(time_point end) {
    const auto key = prefix_ + "id";
    ncclUniqueId id{};
    try {
      if (rank() == 0) {
        MILLRACE_TRY(
            communicator_->check(communicator_->calls->get_unique_id(&id), "ncclGetUniqueId"));
        store_->set(key, std::vector<char>(std::begin(id.internal), std::end(id.internal)));
        return id;
      }
      MILLRACE_TRY(wait_for_key(key, end));
      const auto value = store_->get(key);
      if (value.size() != sizeof id.internal)
        return fail(errc::conflict, "rank 0 published an id of {} bytes, not {}", value.size(),
                    sizeof id.internal);
      std::memcpy(id.internal, value.data(), sizeof id.internal);
      return id;
    } catch (const std::exception &why) {
      return tl::unexpected<error>(store_error(why));
    }
  }

  /// Looks up now and then, since only the store can end a wait on it.
  status wait_for_key(const std::string &key, time_point end) {
    constexpr std::chrono::milliseconds slice(100);
    for (;;) {
      MILLRACE_TRY(is_whole());
      try {
        store_->wait({key}, slice);
        return {};
      } catch (const std::exception &why) {
        auto said = store_error(why);
        if (said.code != errc::timed_out)
          return tl::unexpected<error>(std::move(said));
      }
      if (std::chrono::steady_clock::now() > end)
        return late();
    }
  }

  status transfer(std::span<const std::byte> mine, std::span<std::byte> all) {
    const auto end = std::chrono::steady_clock::now() + deadline_;
    auto &own = *communicator_;
    MILLRACE_TRY_CUDA(cudaSetDevice, own.device);
    // NCCL does nothing for no bytes; here ranks wait for each other all the same.
    const auto block = std::max<std::size_t>(mine.size(), 1);
    const auto ranks = static_cast<std::size_t>(size());
    MILLRACE_TRY(own.make_room(block, ranks));
    std::copy(mine.begin(), mine.end(), own.staging.data());
    MILLRACE_TRY_CUDA(cudaMemcpyAsync, own.sent.data(), own.staging.data(), block,
                      cudaMemcpyHostToDevice, own.stream.get());
    MILLRACE_TRY(own.check(own.calls->all_gather(own.sent.data(), own.gathered.data(), block,
                                                 ncclUint8, own.handle, own.stream.get()),
                           "ncclAllGather"));
    MILLRACE_TRY(settle("ncclAllGather", end)); // before that nothing may follow in the stream
    auto *const arrived = own.staging.data() + block;
    MILLRACE_TRY_CUDA(cudaMemcpyAsync, arrived, own.gathered.data(), ranks * block,
                      cudaMemcpyDeviceToHost, own.stream.get());
    MILLRACE_TRY_CUDA(cudaEventRecord, own.done.get(), own.stream.get());
    MILLRACE_TRY(
        await("ncclAllGather", end, [&own](ncclResult_t) { return has_passed(own.done); }));
    std::copy_n(arrived, all.size(), all.begin());
    return {};
  }

  /// Waits until NCCL has done what `call` began.
  status settle(std::string_view call, time_point end) {
    return await(call, end,
                 [](ncclResult_t state) -> result<bool> { return state != ncclInProgress; });
  }

  /// Asks `done`, with the state of the communicator after `call`, until it says true.
  /// Errors: its own; timed_out; peer_lost when this rank or another one ends.
  template <class Done> status await(std::string_view call, time_point end, Done done) {
    for (;;) {
      MILLRACE_TRY(is_whole());
      auto &own = *communicator_;
      ncclResult_t state = ncclSuccess;
      MILLRACE_TRY(
          own.check(own.calls->comm_get_async_error(own.handle, &state), "ncclCommGetAsyncError"));
      MILLRACE_TRY(own.check(state, call));
      const result<bool> over = done(state);
      if (!over)
        return tl::unexpected<error>(over.error());
      if (*over)
        return {};
      if (std::chrono::steady_clock::now() > end)
        return late();
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::chrono::microseconds(50),
                        [this] { return broken_.has_value(); });
    }
  }

  tl::unexpected<error> late() const {
    return fail(errc::timed_out, "no word from another rank within {} ms",
                (joined_ ? deadline_ : join_deadline_).count());
  }

  status is_whole() {
    const std::lock_guard lock(mutex_);
    if (!broken_ && leaving_ && std::chrono::steady_clock::now() > left_until_)
      broken_ = leaving_;
    if (broken_)
      return tl::unexpected<error>(*broken_);
    return {};
  }
  bool is_broken() const {
    const std::lock_guard lock(mutex_);
    return broken_.has_value();
  }

  /// Ends the call under way, and tells the other ranks the reason. The first one stays.
  void break_off(error why, std::string_view reason) noexcept {
    {
      const std::lock_guard lock(mutex_);
      if (broken_)
        return;
      broken_ = std::move(why);
      changed_.notify_all();
    }
    tell(gave_up, fmt::format("gave up: {}", reason));
  }

  void tell(std::string_view how, std::string_view what) noexcept {
    try {
      const auto text = fmt::format("{}rank {} {}", how, rank(), what);
      store_->set(prefix_ + "ended", std::vector<char>(text.begin(), text.end()));
    } catch (const std::exception &) {
      // Somebody has said so before, or the store is gone, which ends everybody's waits on it.
    }
  }

  /// Waits for the first rank that ends, this one among them.
  void listen() {
    constexpr std::chrono::hours forever(24 * 365 * 10);
    const auto key = prefix_ + "ended";
    try {
      store_->wait({key}, forever);
      const auto value = store_->get(key);
      hear({value.data(), value.size()});
    } catch (const std::exception &why) {
      hear(fmt::format("{}{}", gave_up, store_error(why).message));
    }
  }

  void hear(std::string_view text) {
    const bool is_done = text.starts_with(left);
    text.remove_prefix(std::min(text.size(), is_done ? left.size() : gave_up.size()));
    error why{errc::peer_lost, fmt::format("lost another rank: {}", text)};
    const std::lock_guard lock(mutex_);
    if (broken_)
      return;
    if (is_done) { // all of its bytes may be on their way
      left_until_ = std::chrono::steady_clock::now() + grace;
      leaving_ = std::move(why);
    } else {
      broken_ = std::move(why);
    }
    changed_.notify_all();
  }

  const std::chrono::milliseconds deadline_;
  const std::chrono::milliseconds join_deadline_;
  const std::string prefix_;
  const gloo_store store_;
  std::unique_ptr<nccl_communicator> communicator_; ///< only the thread of the calls uses it
  bool joined_ = false;
  mutable std::mutex mutex_; ///< guards what follows
  std::condition_variable changed_;
  std::optional<error> broken_;
  std::optional<error> leaving_; ///< another rank is done
  time_point left_until_;        ///< how long to wait for what it sent
  std::jthread listener_;        ///< ends before all that it uses
};

} // namespace

status nccl_is_here() {
  if (const auto calls = nccl_library::load(); !calls)
    return tl::unexpected<error>(calls.error());
  if (const auto models = cuda_models(); !models)
    return tl::unexpected<error>(models.error());
  return {};
}

result<std::unique_ptr<collective>> join_nccl(const nccl_options &options,
                                              const gloo_store &store) {
  MILLRACE_TRY(nccl_is_here());
  auto calls = nccl_library::load();
  if (!calls)
    return tl::unexpected<error>(std::move(calls).error());
  auto rank = std::make_unique<nccl_collective>(options, store, *std::move(calls));
  if (auto joined = rank->join(); !joined)
    return with_context(std::move(joined).error(),
                        fmt::format("joining the collective over NCCL as rank {} of {} on cuda:{}, "
                                    "{} ms",
                                    options.rank, options.size, options.device,
                                    options.join_deadline.count()));
  return rank;
}

} // namespace millrace
