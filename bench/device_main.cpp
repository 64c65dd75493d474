// SPDX-License-Identifier: Apache-2.0
// Uploading and widening a micro batch on each device of this machine, each beside one call that
// moves as many bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include "actors/packer/micro_batch.hpp"
#include "actors/trainer/device_batch.hpp"
#include "actors/trainer/tensors.hpp"
#include "bench/pair_reporter.hpp"
#include "bench/plain_copy.hpp"
#include "runtime/device/device.hpp"
#include "runtime/random.hpp"
#include "schema/body.hpp"

namespace millrace::bench {

namespace {

constexpr std::size_t tokens = 262'144;

template <class T> T must(result<T> got) {
  if (got)
    return *std::move(got);
  fmt::print(stderr, "{}\n", got.error().message);
  std::exit(1);
}

/// Sequences of some thousand tokens in turns of some hundred: logprobs on what was sampled, one
/// advantage and one temperature for each sequence.
micro_batch made_batch() {
  random_source random(1);
  std::vector<std::int32_t> ids(tokens);
  for (auto &id : ids)
    id = static_cast<std::int32_t>(random.below(150'000));
  std::vector<std::uint8_t> flags;
  for (std::uint8_t turn = 0; flags.size() < tokens; turn ^= 3)
    flags.insert(flags.end(), std::min<std::size_t>(tokens - flags.size(), random.between(50, 500)),
                 turn);
  std::vector<std::uint32_t> lengths;
  for (std::size_t at = 0; at < tokens; at += lengths.back())
    lengths.push_back(static_cast<std::uint32_t>(
        std::min<std::size_t>(tokens - at, random.between(1'000, 8'000))));
  const auto sampled = static_cast<std::size_t>(std::count(flags.begin(), flags.end(), 3));
  const auto n = lengths.size();

  flatbuffers::FlatBufferBuilder b;
  const auto stream = [&](wire::StreamEncoding encoding, std::size_t values) {
    const auto encodings =
        b.CreateVector(std::vector<std::uint8_t>(n, static_cast<std::uint8_t>(encoding)));
    return wire::CreateStream(b, encodings, b.CreateVector(std::vector<float>(values, -0.5F)));
  };
  const auto logprobs = stream(wire::StreamEncoding::Valued, sampled);
  const auto temperatures = stream(wire::StreamEncoding::Everywhere, n);
  const auto advantages = stream(wire::StreamEncoding::OnTrainable, n);
  const auto ids_at = b.CreateVector(ids);
  const auto flags_at = b.CreateVector(flags);
  const auto lengths_at = b.CreateVector(lengths);
  const auto envs = b.CreateVector(std::vector<std::uint32_t>(n, 0));
  const auto names = b.CreateVectorOfStrings({"math"});
  const auto origins = b.CreateVectorOfStructs(std::vector<wire::Origin>(n, wire::Origin()));
  message parts(1);
  parts[0] = finish_body<wire::MicroBatch>(
      b, wire::CreateMicroBatch(b, 1, 0, 0, false, ids_at, flags_at, lengths_at, envs, names, 0,
                                logprobs, temperatures, advantages, 0, 0, 0, 0, 0, 0, 0, origins));
  return must(micro_batch::parse(std::move(parts)));
}

/// @param bytes read and written, by each of them
void add(const std::string &what, std::size_t bytes, const std::function<void()> &run,
         const std::function<void()> &plain) {
  for (const auto &[kind, body] : {std::pair("kernel", run), std::pair("memcpy", plain)})
    benchmark::RegisterBenchmark(fmt::format("{}|{}|{}", what, tokens, kind).c_str(),
                                 [bytes, body = body](benchmark::State &state) {
                                   for (auto _ : state)
                                     body();
                                   state.SetBytesProcessed(state.iterations() *
                                                           static_cast<std::int64_t>(bytes));
                                 })
        ->UseRealTime();
}

void add_device(device &on, const std::string &name, const micro_batch &batch) {
  const auto sent = must(upload_batch(on, batch));
  const auto read = sent.upload.memory.size();
  const auto moved = read + must(widen_on(on, sent)).memory.size();
  const auto finish = [&on](const status &done) {
    if (!done)
      std::exit(1);
    benchmark::ClobberMemory();
  };
  add(
      "upload, " + name, 2 * read,
      [&on, &batch, finish] {
        const auto one = must(upload_batch(on, batch));
        finish(on.synchronize());
      },
      plain_upload(on, read));
  add(
      "widening, " + name, moved,
      [&on, sent, finish] {
        const auto one = must(widen_on(on, sent));
        finish(on.synchronize());
      },
      plain_move(on, moved / 2));
  add(
      "both, " + name, 2 * read + moved,
      [&on, &batch, finish] {
        const auto one = must(widen_on(on, must(upload_batch(on, batch))));
        finish(on.synchronize());
      },
      plain_move(on, read + moved / 2));
}

/// What a trainer on the host does.
void add_host_way(device &host, const micro_batch &batch, micro_batch_tensors &tensors) {
  widen(batch, tensors);
  const auto read = must(upload_batch(host, batch)).upload.memory.size();
  const auto moved = read + static_cast<std::size_t>(tensors.bytes());
  add(
      "widen()", moved,
      [&batch, &tensors] {
        widen(batch, tensors);
        benchmark::ClobberMemory();
      },
      plain_move(host, moved / 2));
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
  const auto batch = millrace::bench::made_batch();
  millrace::micro_batch_tensors tensors;
  std::vector<std::unique_ptr<millrace::device>> made;
  for (const auto &[name, model] : millrace::devices()) {
    fmt::print("{}: {}\n", name, model);
    made.push_back(millrace::bench::must(millrace::make_device(name)));
    if (name == "host")
      millrace::bench::add_host_way(*made.back(), batch, tensors);
    millrace::bench::add_device(*made.back(), name, batch);
  }
  if (made.size() == 1)
    fmt::print("no GPU: {}\n", millrace::make_device("cuda").error().message);
  millrace::bench::pair_reporter table("plain copy");
  benchmark::RunSpecifiedBenchmarks(&table);
  return 0;
}
