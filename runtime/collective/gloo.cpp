// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/gloo.hpp"

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

namespace millrace {

namespace {

using gloo::transport::UnboundBuffer;

/// What Gloo said, without the place in its own sources that it puts before it.
std::string_view plain(const std::exception &why) {
  const std::string_view text = why.what();
  const auto end = text.find("] ");
  return text.starts_with('[') && end != text.npos ? text.substr(end + 2) : text;
}

class gloo_collective final : public collective {
public:
  gloo_collective(const gloo_options &options, std::shared_ptr<gloo::rendezvous::Context> connected)
      : collective(options.rank, options.size), deadline_(options.deadline),
        context_(std::move(connected)), alarm_bytes_(static_cast<std::size_t>(options.size)),
        alarm_(context_->createUnboundBuffer(alarm_bytes_.data(), alarm_bytes_.size())),
        watcher_([this] { watch(); }) {}

  ~gloo_collective() override { abort("the rank has left"); }

  void abort(std::string_view reason) noexcept override {
    break_off({errc::peer_lost, fmt::format("rank {} aborted: {}", rank(), reason)});
  }

protected:
  status exchange(std::span<const std::byte> mine, std::span<std::byte> all) override {
    std::copy(mine.begin(), mine.end(),
              all.begin() + static_cast<std::ptrdiff_t>(index() * mine.size()));
    try {
      if (!open(mine, all))
        return broken();
      const bool done = transfer(mine.size());
      close();
      if (done)
        return {};
      break_off({errc::peer_lost, "the connections were closed"});
    } catch (const std::exception &why) {
      close();
      break_off(reason(why));
    }
    return broken();
  }

private:
  std::size_t index() const { return static_cast<std::size_t>(rank()); }

  /// Registers the buffers of an exchange, so that abort() can end the waits on them.
  bool open(std::span<const std::byte> mine, std::span<std::byte> all) {
    const std::lock_guard lock(mutex_);
    if (broken_)
      return false;
    ++opened_;
    // Gloo has one type for both directions; it does not write into what it sends.
    sending_ = context_->createUnboundBuffer(const_cast<std::byte *>(mine.data()), mine.size());
    receiving_ = context_->createUnboundBuffer(all.data(), all.size());
    return true;
  }

  void close() {
    const std::lock_guard lock(mutex_);
    sending_.reset();
    receiving_.reset();
    changed_.notify_all();
  }

  /// A send that a dying peer cuts off may be told to nobody (docs/gotchas). A receive that no
  /// message ends hears of every connection that closes; an exchange that does not end within
  /// `grace` after that waits for nothing, and is broken off. One whose bytes have all come ends
  /// well before: a rank that is done may leave first.
  void watch() {
    constexpr std::uint64_t slot = std::uint64_t{1} << 63U; // no exchange has it
    constexpr std::chrono::hours forever(24 * 365 * 10);
    constexpr std::chrono::seconds grace(5);
    std::optional<error> why;
    try {
      for (int other = 0; other < size(); ++other)
        if (other != rank())
          alarm_->recv(other, slot, static_cast<std::size_t>(other), 1);
      if (size() == 1 || !alarm_->waitRecv(forever))
        return; // this rank has left, or broken off
    } catch (const std::exception &closed) {
      why = reason(closed);
    }
    std::unique_lock lock(mutex_);
    const auto under_way = opened_;
    const auto is_over = [&] { return broken_ || !sending_ || opened_ != under_way; };
    if (!why || changed_.wait_for(lock, grace, is_over))
      return; // the next one fails by itself
    lock.unlock();
    break_off(std::move(*why));
  }

  /// False if abort() ended it. Throws what Gloo throws.
  bool transfer(std::size_t bytes) {
    const auto end = std::chrono::steady_clock::now() + deadline_;
    const auto left = [&] {
      const auto now = std::chrono::steady_clock::now();
      return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(end - now),
                      std::chrono::milliseconds(1));
    };
    const auto slot = round_++;
    for (int other = 0; other < size(); ++other)
      if (other != rank()) {
        receiving_->recv(other, slot, static_cast<std::size_t>(other) * bytes, bytes);
        sending_->send(other, slot, 0, bytes);
      }
    for (int other = 1; other < size(); ++other)
      if (!receiving_->waitRecv(left()) || !sending_->waitSend(left()))
        return false;
    return true;
  }

  error reason(const std::exception &why) const {
    const auto text = plain(why);
    if (text.find("Timed out") != text.npos)
      return {errc::timed_out,
              fmt::format("no word from another rank within {} ms", deadline_.count())};
    return {errc::peer_lost, fmt::format("lost another rank: {}", text)};
  }

  /// Ends the wait under way and closes the connections. A rank that waits for this one then fails
  /// and closes its own, so the end spreads; one that waits for another only hears of it there.
  void break_off(error why) noexcept {
    const std::lock_guard lock(mutex_);
    if (broken_)
      return;
    broken_ = std::move(why);
    try {
      if (sending_)
        sending_->abortWaitSend();
      if (receiving_)
        receiving_->abortWaitRecv();
      alarm_->abortWaitRecv();
      changed_.notify_all();
      context_->closeConnections();
    } catch (const std::exception &) {
      // The connections are gone already, which is what was wanted.
    }
  }

  status broken() {
    const std::lock_guard lock(mutex_);
    return tl::unexpected<error>(*broken_);
  }

  const std::chrono::milliseconds deadline_;
  const std::shared_ptr<gloo::rendezvous::Context> context_;
  std::uint64_t round_ = 0; ///< the slot of an exchange, so that rounds cannot mix
  std::mutex mutex_;        ///< guards what follows against abort()
  std::unique_ptr<UnboundBuffer> sending_;
  std::unique_ptr<UnboundBuffer> receiving_;
  std::optional<error> broken_;
  std::uint64_t opened_ = 0; ///< exchanges
  std::condition_variable changed_;
  std::vector<std::byte> alarm_bytes_; ///< never written
  std::unique_ptr<UnboundBuffer> alarm_;
  std::jthread watcher_; ///< ends before all that it uses
};

} // namespace

gloo_store make_gloo_store() { return std::make_shared<gloo::rendezvous::HashStore>(); }

class gloo_relay::board final : public gloo::rendezvous::Store {
public:
  explicit board(std::function<void(std::string, std::string)> publish)
      : publish_(std::move(publish)) {}

  void deliver(const std::string &key, const std::string &value) {
    const std::lock_guard lock(mutex_);
    values_.try_emplace(key, value.begin(), value.end());
    changed_.notify_all();
  }

  void set(const std::string &key, const std::vector<char> &data) override {
    const std::string value(data.begin(), data.end());
    deliver(key, value);
    {
      const std::lock_guard lock(mutex_);
      mine_.emplace_back(key, value);
    }
    publish_(key, value);
  }

  void abort(std::string_view reason) {
    const std::lock_guard lock(mutex_);
    aborted_ = reason;
    changed_.notify_all();
  }

  std::vector<std::pair<std::string, std::string>> published() const {
    const std::lock_guard lock(mutex_);
    return mine_;
  }

  std::vector<char> get(const std::string &key) override {
    wait({key});
    const std::lock_guard lock(mutex_);
    return values_.at(key);
  }

  void wait(const std::vector<std::string> &keys) override { wait(keys, kDefaultTimeout); }

  void wait(const std::vector<std::string> &keys,
            const std::chrono::milliseconds &timeout) override {
    std::unique_lock lock(mutex_);
    const bool here = changed_.wait_for(lock, timeout, [&] {
      return !aborted_.empty() ||
             std::ranges::all_of(keys, [&](const auto &key) { return values_.contains(key); });
    });
    if (!aborted_.empty())
      throw std::runtime_error("the connections are closed: " + aborted_);
    if (!here)
      throw std::runtime_error("Timed out: another rank has not said where it is");
  }

private:
  const std::function<void(std::string, std::string)> publish_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::vector<char>> values_;
  std::vector<std::pair<std::string, std::string>> mine_;
  std::string aborted_; ///< why; empty: it is not
};

gloo_relay::gloo_relay(std::function<void(std::string key, std::string value)> publish)
    : board_(std::make_shared<board>(std::move(publish))), store_(board_) {}

void gloo_relay::deliver(const std::string &key, const std::string &value) {
  board_->deliver(key, value);
}

void gloo_relay::abort(std::string_view reason) { board_->abort(reason); }

std::vector<std::pair<std::string, std::string>> gloo_relay::published() const {
  return board_->published();
}

namespace {

/// Gloo has one type of error for its sockets: "bind: ..." and "listen: ..." are of this end.
errc kind_of(std::string_view text) {
  const auto says = [&](std::string_view words) { return text.find(words) != text.npos; };
  if (says("imeout") || says("imed out"))
    return errc::timed_out;
  return says("onnect") || says("closed") || says("roken pipe") ? errc::peer_lost : errc::io;
}

} // namespace

result<std::unique_ptr<collective>> join_gloo(const gloo_options &options,
                                              const gloo_store &store) {
  // Gloo writes without MSG_NOSIGNAL, so a rank that has gone would end the others by SIGPIPE.
  if (std::signal(SIGPIPE, SIG_IGN) == SIG_ERR)
    return fail(errc::io, "SIGPIPE cannot be ignored");
  try {
    gloo::transport::tcp::attr where(options.address.c_str());
    auto device = gloo::transport::tcp::CreateDevice(where);
    auto context = std::make_shared<gloo::rendezvous::Context>(options.rank, options.size);
    context->setTimeout(options.deadline);
    gloo::rendezvous::PrefixStore prefixed(options.prefix, *store);
    context->connectFullMesh(
        options.prefix.empty() ? *store : static_cast<gloo::rendezvous::Store &>(prefixed), device);
    return std::make_unique<gloo_collective>(options, std::move(context));
  } catch (const std::exception &why) {
    const auto text = plain(why);
    return fail(kind_of(text),
                "joining the collective as rank {} of {} at {}, {} ms for each rank: {}",
                options.rank, options.size, options.address, options.deadline.count(), text);
  }
}

} // namespace millrace
