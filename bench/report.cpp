// SPDX-License-Identifier: Apache-2.0
#include "bench/report.hpp"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <thread>

#include "runtime/json_out.hpp"

namespace millrace::bench {

namespace {

std::string bytes_text(std::uint64_t bytes) {
  if (bytes >= 1 << 20)
    return fmt::format("{} MiB", bytes >> 20);
  return fmt::format("{} KiB", bytes >> 10);
}

json::tree to_json(const cost &what) {
  return {{"seconds", what.seconds},
          {"processor_seconds", what.processor_seconds},
          {"switches", what.switches},
          {"page_faults", what.page_faults}};
}

json::tree to_json(const comparison &measured) {
  const auto ratio = measured.ratio();
  json::tree out{{"name", name_of(measured.what)},
                 {"transport", measured.what.transport},
                 {"hops", measured.what.hops},
                 {"message_bytes", measured.what.size},
                 {"memory_limit", measured.what.memory_limit},
                 {"bytes", measured.bytes},
                 {"hub_bytes_per_s", measured.hub_rate()},
                 {"bare_bytes_per_s", measured.bare_rate()},
                 {"ratio", ratio.median},
                 {"ratio_low_quartile", ratio.low},
                 {"ratio_high_quartile", ratio.high}};
  for (const auto &one : measured.rounds)
    out["rounds"].push_back({{"hubs", to_json(one.hubs)}, {"bare", to_json(one.bare)}});
  return out;
}

} // namespace

std::string name_of(const setting &what) {
  return fmt::format("{} {}{}{}", what.transport, bytes_text(what.size),
                     what.name.empty() ? "" : ", ", what.name);
}

void print_head(std::string_view title) {
  fmt::print("{:<28} {:>8} {:>8}  {:<18} {:>14}\n", title, "hubs", "bare", "hubs / bare",
             "processor s/GB");
  fmt::print("{:<28} {:>8} {:>8}  {:<18} {:>6} {:>7}\n", "", "MB/s", "MB/s", "median (quartiles)",
             "hubs", "bare");
  std::fflush(stdout);
}

void print_row(const comparison &measured) {
  const auto ratio = measured.ratio();
  fmt::print("{:<28} {:>8.0f} {:>8.0f}  {:.2f} ({:.2f}-{:.2f})  {:>8.2f} {:>7.2f}\n",
             name_of(measured.what), measured.hub_rate() / 1e6, measured.bare_rate() / 1e6,
             ratio.median, ratio.low, ratio.high, measured.hub_processor(),
             measured.bare_processor());
  std::fflush(stdout);
}

status write_json(const std::vector<comparison> &all, std::string_view title,
                  const std::string &file) {
  json::tree out{{"title", title}, {"cores", std::thread::hardware_concurrency()}};
  for (const auto &one : all)
    out["lines"].push_back(to_json(one));
  const auto text = json::dump(out, 2);
  if (file == "-") {
    std::cout << text << "\n";
    return {};
  }
  std::ofstream stream(file);
  stream << text << "\n";
  if (!stream.flush())
    return fail(errc::io, "cannot write '{}'", file);
  return {};
}

} // namespace millrace::bench
