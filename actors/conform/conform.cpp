// SPDX-License-Identifier: Apache-2.0
#include "actors/conform/conform.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>
#include <vector>

#include "actors/conform/cases.hpp"
#include "runtime/file.hpp"

namespace millrace {

namespace {

/// The largest case that is read. Unit: bytes.
constexpr std::size_t most_case_bytes = std::size_t{256} << 20;

struct folder {
  std::string_view name;
  case_outcome (*run)(const json::value &test);
};

constexpr std::array<folder, 5> folders{{{"graph", run_graph_case},
                                         {"scoring", run_scoring_case},
                                         {"packing", run_packing_case},
                                         {"partition", run_partition_case},
                                         {"loss", run_loss_case}}};

/// The JSON files of a folder, by name; none if there is no such folder.
result<std::vector<std::filesystem::path>> cases_in(const std::filesystem::path &dir) {
  std::vector<std::filesystem::path> out;
  std::error_code why;
  if (!std::filesystem::is_directory(dir, why))
    return out;
  auto entry = std::filesystem::directory_iterator(dir, why);
  for (; !why && entry != std::filesystem::directory_iterator(); entry.increment(why))
    if (entry->path().extension() == ".json")
      out.push_back(entry->path());
  if (why)
    return fail(errc::io, "{}: cannot list it: {}", dir.string(), why.message());
  std::sort(out.begin(), out.end());
  return out;
}

case_outcome run_file(const folder &kind, const std::filesystem::path &file,
                      json::document &reader) {
  const auto text = read_file(file, most_case_bytes);
  if (!text)
    return case_outcome::fail(text.error().message);
  const auto test = reader.parse(*text);
  return test ? kind.run(*test) : case_outcome::fail(test.error().message);
}

void report(const folder &kind, const std::filesystem::path &file, const case_outcome &outcome,
            conform_summary &sum, std::ostream &out) {
  if (outcome.verdict == case_outcome::kind::passed) {
    ++sum.passed;
    return;
  }
  ++sum.failed;
  out << fmt::format("FAILED {}/{}: {}\n", kind.name, file.stem().string(), outcome.why);
}

} // namespace

result<conform_summary> conform(const std::filesystem::path &dir, std::ostream &out) {
  std::error_code why;
  if (!std::filesystem::is_directory(dir, why))
    return fail(errc::not_found, "{}: no such folder; conform wants one with golden cases",
                dir.string());
  conform_summary sum;
  json::document reader;
  for (const auto &kind : folders) {
    const auto files = cases_in(dir / kind.name);
    if (!files)
      return tl::unexpected(files.error());
    for (const auto &file : *files)
      report(kind, file, run_file(kind, file, reader), sum, out);
  }
  if (sum.passed + sum.failed == 0)
    return fail(errc::not_found,
                "{}: no cases; conform wants JSON files in the folders graph, scoring, packing, "
                "partition or loss of it",
                dir.string());
  out << sum.passed << " passed, " << sum.failed << " failed\n";
  return sum;
}

} // namespace millrace
