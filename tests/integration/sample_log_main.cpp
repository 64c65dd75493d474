// SPDX-License-Identifier: Apache-2.0
// sample_planner_log FILE: writes the log of tests/support/sample_log, for tests of the program.
#include <cstdio>

#include "schema/planner_log.hpp"
#include "tests/support/sample_log.hpp"

int main(int argc, char **argv) {
  using namespace millrace;
  if (argc != 2) {
    std::fprintf(stderr, "usage: sample_planner_log FILE\n");
    return 2;
  }
  auto log = planner_log::open(argv[1], {},
                               [](std::uint64_t, const log_record &) -> status { return {}; });
  status done = log ? status{} : tl::unexpected(log.error());
  for (const auto &record : test::sample_log())
    if (done)
      done = log->append(record);
  if (done)
    done = log->sync();
  if (done)
    return 0;
  std::fprintf(stderr, "%s\n", done.error().message.c_str());
  return 1;
}
