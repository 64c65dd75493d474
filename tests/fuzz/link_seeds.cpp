// SPDX-License-Identifier: Apache-2.0
// link_seeds tests/fuzz/corpus: writes first inputs for the fuzzer of link headers. To be run again
// when schema/link.fbs changes.
#include <cstdio>
#include <filesystem>

#include "runtime/file.hpp"
#include "tests/support/fuzz_parts.hpp"
#include "transport/link_header.hpp"

namespace {

using namespace millrace;

process_identity some_process() {
  return {.run = "r",
          .process = "scorer-1",
          .roles = {"scorer", "packer"},
          .incarnation = 3,
          .program = "0.1.0",
          .config = "c0ffee"};
}

link_header payload(lane where, std::uint64_t number, std::uint64_t id) {
  return {.kind = link_kind::payload, .where = where, .session = 7, .number = number, .id = id};
}

/// A whole session: hello, messages, a repeat, a wish, a hole, and the next session.
message session() {
  const link_header hello{
      .kind = link_kind::hello, .where = lane::data, .session = 7, .identity = some_process()};
  const link_header wish{
      .kind = link_kind::heartbeat, .session = 7, .data_session = 7, .data_wanted = 500'000};
  return {encode(hello),
          encode(payload(lane::data, 1, 1), 1),
          encode(payload(lane::data, 2, 2), 1),
          encode(payload(lane::control, 1, 1)),
          encode(wish),
          encode(payload(lane::data, 4, 4), 1),
          encode(hello),
          encode(payload(lane::data, 1, 2), 1),
          encode(payload(lane::data, 2, 3), 1)};
}

/// What a side that sends hears.
message answers() {
  const link_header welcome{.kind = link_kind::welcome,
                            .where = lane::data,
                            .session = 7,
                            .identity = some_process(),
                            .data_session = 7,
                            .data_received = 4,
                            .data_credit = 100};
  const link_header answer{
      .kind = link_kind::heartbeat, .session = 7, .data_received = 9, .data_credit = 300};
  const link_header refusal{.kind = link_kind::refusal, .reason = "no", .for_good = true};
  return {encode(welcome), encode(answer), encode(refusal),
          encode({.kind = link_kind::request, .request = 1}, 1),
          encode({.kind = link_kind::reply, .reason = "busy", .request = 1})};
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: link_seeds CORPUS-FOLDER\n");
    return 2;
  }
  const auto folder = std::filesystem::path(argv[1]) / "link";
  std::filesystem::create_directories(folder);
  const bool wrote = write_file_atomically(folder / "session", test::input_of(session())) &&
                     write_file_atomically(folder / "answers", test::input_of(answers()));
  return wrote ? 0 : 1;
}
