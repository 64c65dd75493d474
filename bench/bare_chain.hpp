// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/chain.hpp"
#include "runtime/result.hpp"

#include <zmq.hpp>

namespace millrace::bench {

/// The least that libzmq needs: per connection a DEALER and a ROUTER without high-water marks, per
/// node a context of its own (as processes have) and one thread that blocks in receive. Nothing
/// is copied on sending and nothing is answered.
/// Thread: run() by the one that made it, which is the first node.
class bare_chain final : public chain {
public:
  /// @param binds one for each node but the first. Errors: io.
  static result<std::unique_ptr<bare_chain>> start(const std::vector<std::string> &binds);
  ~bare_chain() override;
  void run(const load &what) override;

private:
  struct node {
    zmq::context_t context{1};
    zmq::socket_t in{}, out{};
    std::thread runs{};
  };

  bare_chain() = default;
  void join(node &from, node &to, const std::string &bind);
  void pass_on(node &here);

  std::vector<std::unique_ptr<node>> nodes_;
  arrival_count arrived_;
};

} // namespace millrace::bench
