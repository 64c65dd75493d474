// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/chain.hpp"
#include "runtime/result.hpp"
#include "transport/hub.hpp"

namespace millrace::bench {

/// A hub for each node, and between two of them a link with the default limits.
class hub_chain final : public chain {
public:
  /// @param binds one for each node. @param memory_limit of each. Errors: those of hub::start.
  static result<std::unique_ptr<hub_chain>> start(const std::vector<std::string> &binds,
                                                  std::uint64_t memory_limit);
  ~hub_chain() override;
  void run(const load &what) override;

private:
  class node;
  hub_chain();

  std::vector<std::unique_ptr<node>> nodes_;
  arrival_count arrived_;
};

} // namespace millrace::bench
