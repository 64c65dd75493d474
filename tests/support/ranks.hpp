// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/collective/collective.hpp"

namespace millrace::test {

/// Runs `body(rank)` on a thread for each rank of a job and gives back what they returned, in rank
/// order. An empty element is a rank that takes no part.
template <class Body>
auto on_all_ranks(std::vector<std::unique_ptr<collective>> &ranks, Body body) {
  using answer = decltype(body(*ranks[0]));
  std::vector<answer> answers(ranks.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i])
      threads.emplace_back([&ranks, &answers, &body, i] { answers[i] = body(*ranks[i]); });
  threads.clear(); // joins
  return answers;
}

} // namespace millrace::test
