// SPDX-License-Identifier: Apache-2.0
// Writes first inputs for micro_batch_fuzz.cpp into a folder: gathered bins of every kind. To be
// run again when the schema changes: micro_batch_seeds tests/fuzz/corpus/micro_batch
#include <cstdint>
#include <fstream>
#include <string>

#include "actors/packer/gather.hpp"
#include "actors/packer/micro_batch.hpp"
#include "tests/support/random_bins.hpp"

using namespace millrace;

namespace {

bool write(const std::string &path, const message &parts) {
  std::string bytes{static_cast<char>(parts.size() - 1)};
  const auto append = [&](const frame &part) {
    bytes.append(reinterpret_cast<const char *>(part.data()), part.size());
  };
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto size = static_cast<std::uint32_t>(parts[i].size());
    bytes.append(reinterpret_cast<const char *>(&size), sizeof size);
    append(parts[i]);
  }
  append(parts[0]);
  return static_cast<bool>(std::ofstream(path, std::ios::binary) << bytes);
}

/// What kind of micro batch it is: one input of each is kept.
std::string kind_of(const micro_batch &batch) {
  std::string kind = batch.dummy() ? "dummy" : "plain";
  if (batch.routed_experts())
    kind += "_experts";
  if (!batch.mm_kwargs().empty())
    kind += "_images";
  if (batch.rl_weights() && batch.ref_logprobs())
    kind += "_streams";
  return kind;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    test::made_bin made;
    test::bin_maker(seed).fill(made);
    const auto parts = gather(made.plan);
    if (!parts)
      return 1;
    const auto batch = micro_batch::parse(*parts);
    if (!batch)
      return 1;
    const auto path = std::string(argv[1]) + "/" + kind_of(*batch);
    if (batch->bytes() < 3000 && !std::ifstream(path).good() && !write(path, *parts))
      return 1;
  }
  return 0;
}
