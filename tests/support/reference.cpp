// SPDX-License-Identifier: Apache-2.0
#include "tests/support/reference.hpp"

#include <limits>

#include "actors/graph/branches.hpp"

namespace millrace::test {

given_reference::given_reference(const body<wire::GroupHeader> &header,
                                 const std::vector<frame_data> &episodes) {
  for (const auto &episode : episodes)
    sealed.push_back(sealed_one(episode));
  for (const auto &place : traces_without_reference(*header)) {
    auto nodes = sealed[place.episode].nodes(place.trace);
    std::vector<std::vector<float>> branches;
    const auto graph = branches_of(nodes, {}).value();
    for (const auto &path : graph.trainable) {
      std::vector<float> logprobs{std::numeric_limits<float>::quiet_NaN()};
      while (logprobs.size() < path.tokens)
        logprobs.push_back(-static_cast<float>(logprobs.size() + 1));
      branches.push_back(std::move(logprobs));
    }
    values.traces.push_back({.episode = place.episode,
                             .trace = place.trace,
                             .nodes = std::move(nodes),
                             .branches = std::move(branches)});
  }
}

} // namespace millrace::test
