// SPDX-License-Identifier: Apache-2.0
// The loops over all tokens of a sample, each beside a memcpy that moves as many bytes.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include "actors/assembler/filters.hpp"
#include "actors/graph/echo.hpp"
#include "actors/packer/pruned.hpp"
#include "actors/trainer/spread.hpp"
#include "bench/pair_reporter.hpp"
#include "runtime/random.hpp"
#include "schema/body.hpp"

namespace millrace::bench {

namespace {

constexpr auto valued = static_cast<std::uint8_t>(wire::TokenFlag::Valued);
constexpr std::size_t window = 3'000;
constexpr float certain = -0.001F;
constexpr float doubtful = -1.0F;

/// n tokens in turns: some hundred that the model did not sample, some hundred that it did.
struct tokens {
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> mask;
  std::vector<std::uint8_t> flags;
  std::vector<float> compact; ///< one for each true of the mask
  std::vector<float> loops;   ///< the same many: of each window the last token read is not certain
  std::vector<float> out;
  node_view node;

  tokens(const tokens &) = delete; // its node points into it
  tokens &operator=(const tokens &) = delete;
  explicit tokens(std::size_t n) : ids(n), mask(n), out(n) {
    random_source random(1);
    for (auto &id : ids)
      id = static_cast<std::int32_t>(random.below(150'000));
    std::uint8_t trains = 0;
    for (std::size_t at = 0; at < n; trains ^= 1) {
      const auto end = std::min<std::size_t>(n, at + random.between(50, 500));
      std::fill(mask.begin() + static_cast<std::ptrdiff_t>(at),
                mask.begin() + static_cast<std::ptrdiff_t>(end), trains);
      at = end;
    }
    for (auto one : mask)
      flags.push_back(one != 0 ? std::uint8_t{3} : std::uint8_t{0});
    const auto valued_tokens = count_true(mask);
    for (std::size_t i = 0; i < valued_tokens; ++i) {
      compact.push_back(random.chance(60) ? certain : doubtful);
      loops.push_back(i % (window + 1) == 0 || i % (window + 1) == window ? doubtful : certain);
    }
    node.sampled = true;
    node.token_ids = ids;
    node.mask = mask;
    node.is_content = mask;
    node.logprobs = compact;
  }
};

/// A loop, and the bytes that it reads and writes.
struct kernel {
  std::string name;
  std::function<std::size_t(tokens &)> bytes;
  std::function<void(tokens &)> run;
};

std::vector<kernel> kernels() {
  const filter_rules::rare_token rare{.id_above = 100'000, .logprob_below = -13.9F};
  const filter_rules::certain_run run{.window = window, .logprob_above = -0.01005F};
  const auto compact = [](tokens &t) { return sizeof(float) * t.compact.size(); };
  return {
      {"advantage fill", [](tokens &t) { return 5 * t.flags.size(); },
       [](tokens &t) { fill_where(t.flags, valued, 0.5F, t.out.data()); }},
      {"mask count", [](tokens &t) { return t.mask.size(); },
       [](tokens &t) { benchmark::DoNotOptimize(count_true(t.mask)); }},
      {"compact to full", [compact](tokens &t) { return 5 * t.flags.size() + compact(t); },
       [](tokens &t) { spread(t.flags, t.compact.data(), t.out.data()); }},
      {"prune", [compact](tokens &t) { return 2 * compact(t); },
       [](tokens &t) { write_pruned(t.compact, 1.0F, t.out.data()); }},
      {"echo weights", [](tokens &t) { return 9 * t.out.size(); },
       [](tokens &t) { raise_to_echo(t.node, 0.1F, t.out); }},
      {"gibberish", compact,
       [rare](tokens &t) { benchmark::DoNotOptimize(has_rare_token(t.node, rare)); }},
      {"repetition", compact,
       [run](tokens &t) { benchmark::DoNotOptimize(find_run(t.compact, 0, run)); }},
      {"repetition, all read", compact,
       [run](tokens &t) { benchmark::DoNotOptimize(find_run(t.loops, 0, run)); }},
  };
}

/// Copies half as many bytes: it reads them and writes them.
void copy(std::size_t bytes, std::vector<std::byte> &from, std::vector<std::byte> &to) {
  std::memcpy(to.data(), from.data(), bytes / 2);
  benchmark::DoNotOptimize(to.data());
  benchmark::ClobberMemory();
}

/// @param on outlives the run
void add(const kernel &one, tokens &on) {
  const auto name = fmt::format("{}|{}", one.name, on.ids.size());
  const auto finish = [](benchmark::State &state, std::size_t bytes) {
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
  };
  benchmark::RegisterBenchmark((name + "|kernel").c_str(), [one, &on, finish](benchmark::State &s) {
    for (auto _ : s) {
      one.run(on);
      benchmark::ClobberMemory();
    }
    finish(s, one.bytes(on));
  });
  benchmark::RegisterBenchmark((name + "|memcpy").c_str(), [one, &on, finish](benchmark::State &s) {
    const auto bytes = one.bytes(on);
    std::vector<std::byte> from(bytes), to(bytes);
    for (auto _ : s)
      copy(bytes, from, to);
    finish(s, bytes);
  });
}

} // namespace

} // namespace millrace::bench

int main(int argc, char **argv) {
  // Flags of the command line come later and win.
  std::vector<std::string> words{argv[0], "--benchmark_repetitions=9",
                                 "--benchmark_enable_random_interleaving=false",
                                 "--benchmark_min_time=0.05"};
  words.insert(words.end(), argv + 1, argv + argc);
  std::vector<char *> all;
  for (auto &word : words)
    all.push_back(word.data());
  auto count = static_cast<int>(all.size());
  benchmark::Initialize(&count, all.data());
  if (benchmark::ReportUnrecognizedArguments(count, all.data()))
    return 2;
  constexpr std::size_t micro_batch = 32'768;
  constexpr std::size_t beyond_caches = std::size_t{1} << 24;
  millrace::bench::tokens small(micro_batch);
  millrace::bench::tokens large(beyond_caches);
  for (auto *on : {&small, &large})
    for (const auto &one : millrace::bench::kernels())
      millrace::bench::add(one, *on);
  millrace::bench::pair_reporter table("memcpy");
  benchmark::RunSpecifiedBenchmarks(&table);
  return 0;
}
