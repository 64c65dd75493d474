// SPDX-License-Identifier: Apache-2.0
#include "bench/comparison.hpp"

#include <algorithm>

#include <unistd.h>

#include "bench/bare_chain.hpp"
#include "bench/hub_chain.hpp"

namespace millrace::bench {

namespace {

std::vector<std::string> binds(const setting &what, std::string_view whose, std::size_t count) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(what.transport == "ipc"
                      ? fmt::format("ipc:///tmp/millrace-bench-{}-{}-{}", ::getpid(), whose, i)
                      : "tcp://127.0.0.1:*");
  return out;
}

template <class Value> double median(const std::vector<round> &rounds, Value value) {
  std::vector<double> values;
  for (const auto &one : rounds)
    values.push_back(value(one));
  return quartiles_of(std::move(values)).median;
}

} // namespace

result<comparison> compare(const setting &what, const effort &how, const frame &slab) {
  auto hubs = hub_chain::start(binds(what, "hub", what.hops + 1), what.memory_limit);
  if (!hubs)
    return tl::unexpected(hubs.error());
  auto bare = bare_chain::start(binds(what, "bare", what.hops));
  if (!bare)
    return tl::unexpected(bare.error());
  const load sent{.size = what.size,
                  .count =
                      std::max<std::size_t>(1, static_cast<std::size_t>(how.bytes / what.size)),
                  .slab = slab};
  const auto of_hubs = [&] { (*hubs)->run(sent); };
  const auto of_bare = [&] { (*bare)->run(sent); };
  for (int i = 0; i < 2;
       ++i) { // until sessions, credit and the memory of malloc's arenas are there
    of_hubs();
    of_bare();
  }
  comparison out{.what = what, .bytes = sent.bytes(), .rounds = {}};
  for (std::size_t i = 0; i < how.rounds; ++i) {
    round one;
    if (i % 2 == 0) {
      one.hubs = measure(of_hubs);
      one.bare = measure(of_bare);
    } else {
      one.bare = measure(of_bare);
      one.hubs = measure(of_hubs);
    }
    out.rounds.push_back(one);
  }
  return out;
}

double comparison::hub_rate() const {
  return static_cast<double>(bytes) / median(rounds, [](const round &r) { return r.hubs.seconds; });
}

double comparison::bare_rate() const {
  return static_cast<double>(bytes) / median(rounds, [](const round &r) { return r.bare.seconds; });
}

quartiles comparison::ratio() const {
  std::vector<double> ratios;
  for (const auto &one : rounds)
    ratios.push_back(one.bare.seconds / one.hubs.seconds);
  return quartiles_of(std::move(ratios));
}

double comparison::hub_processor() const {
  return median(rounds, [](const round &r) { return r.hubs.processor_seconds; }) /
         static_cast<double>(bytes) * 1e9;
}

double comparison::bare_processor() const {
  return median(rounds, [](const round &r) { return r.bare.processor_seconds; }) /
         static_cast<double>(bytes) * 1e9;
}

} // namespace millrace::bench
