// SPDX-License-Identifier: Apache-2.0
// codec_seeds tests/fuzz/corpus: writes a message of every kind for the fuzzers of the codecs. To
// be run again when their schemas change.
#include <cstdio>
#include <filesystem>
#include <string>

#include "actors/node/codec.hpp"
#include "actors/node/host_codec.hpp"
#include "runtime/file.hpp"
#include "tests/support/fuzz_parts.hpp"
#include "tests/support/random_host_parcels.hpp"
#include "tests/support/random_parcels.hpp"

namespace {

using namespace millrace;

bool save(const std::filesystem::path &folder, const std::string &name, const std::string &bytes) {
  std::filesystem::create_directories(folder);
  const auto wrote = write_file_atomically(folder / name, bytes);
  if (!wrote)
    std::fprintf(stderr, "%s\n", wrote.error().message.c_str());
  return wrote.has_value();
}

/// Two messages of each kind, small ones: mutations of a small input are quicker.
bool save_actor_messages(const std::filesystem::path &folder) {
  constexpr std::size_t most = 4000;
  test::parcel_maker maker(1);
  for (std::size_t kind = 0; kind < test::parcel_kinds; ++kind)
    for (const char *number : {"_0", "_1"}) {
      auto what = maker.make(kind);
      while (test::input_of(encode(what, "actor-0").parts).size() > most)
        what = maker.make(kind);
      if (!save(folder, std::string(name_of(what)) + number,
                test::input_of(encode(what, "actor-0").parts)))
        return false;
    }
  return true;
}

bool save_host_messages(const std::filesystem::path &folder) {
  test::host_parcel_maker maker(1);
  for (std::size_t kind = 0; kind < test::host_parcel_kinds; ++kind) {
    const auto body = encode(maker.make(kind)).front();
    if (!save(folder, "kind_" + std::to_string(kind),
              {reinterpret_cast<const char *>(body.data()), body.size()}))
      return false;
  }
  return true;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: codec_seeds CORPUS-FOLDER\n");
    return 2;
  }
  const std::filesystem::path root = argv[1];
  return save_actor_messages(root / "actor_codec") && save_host_messages(root / "host_codec") ? 0
                                                                                              : 1;
}
