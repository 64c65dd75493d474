// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/collective/collective.hpp"

namespace gloo::rendezvous {
class Store;
}

namespace millrace {

/// Where ranks find each other: a key-value store that all of them see.
using gloo_store = std::shared_ptr<gloo::rendezvous::Store>;

/// A store for ranks that live in one process, as threads. Each job needs one of its own.
gloo_store make_gloo_store();

/// Where ranks in processes of their own find each other: what one publishes is carried to the
/// others by whoever made this. Thread: any.
class gloo_relay {
public:
  /// @param publish is called from the thread that joins, with bytes.
  explicit gloo_relay(std::function<void(std::string key, std::string value)> publish);
  const gloo_store &store() const noexcept { return store_; }
  /// What a rank has published. The first value of a key stays.
  void deliver(const std::string &key, const std::string &value);
  /// Who joins over it waits for nobody any more.
  void abort(std::string_view reason);
  /// All that ranks here have published, for a carrier that has forgotten it.
  std::vector<std::pair<std::string, std::string>> published() const;

private:
  class board;
  std::shared_ptr<board> board_;
  gloo_store store_;
};

struct gloo_options {
  int rank = 0;
  int size = 1;
  /// The address that the other ranks connect to. Gloo's ports know no keys: whoever reaches the
  /// address can take part, so anything but loopback must be a network of its own.
  std::string address = "127.0.0.1";
  /// Put before every key: jobs that share a store differ in it. Empty: the store is this job's
  /// own.
  std::string prefix = {};
  /// For each exchange, and for each rank that is waited for while joining.
  std::chrono::milliseconds deadline{30'000};
};

/// A rank over TCP. Blocks until all ranks have joined.
/// Errors: `timed_out` if one does not; `peer_lost` if one goes while the ranks join; `io` if Gloo
/// cannot open its sockets.
/// From then on the process ignores SIGPIPE. Thread: Gloo runs one thread of its own per rank.
result<std::unique_ptr<collective>> join_gloo(const gloo_options &options, const gloo_store &store);

} // namespace millrace
