// SPDX-License-Identifier: Apache-2.0
#include "bench/options.hpp"

#include <charconv>
#include <cstdio>
#include <string_view>

#include "bench/report.hpp"
#include "runtime/log.hpp"

namespace millrace::bench {

namespace {

constexpr std::size_t slab_bytes = 64 << 20;
constexpr std::uint64_t most = 1 << 20; // rounds, MiB

result<std::uint64_t> number(std::string_view name, std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || value == 0 || value > most)
    return fail(errc::bad_argument, "{} '{}': a whole number from 1 to {} is wanted", name, text,
                most);
  return value;
}

/// Bytes that no memory page is shared for.
frame written_slab() {
  buffer slab(slab_bytes);
  std::uint32_t state = 1;
  for (auto &byte : slab.bytes()) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::byte>(state >> 24);
  }
  return std::move(slab).freeze();
}

status measure_all(const options &chosen, std::string_view title,
                   const std::vector<setting> &settings) {
  const bool table = chosen.json != "-";
  const auto slab = written_slab();
  std::vector<comparison> all;
  if (table)
    print_head(title);
  for (const auto &one : settings) {
    if (name_of(one).find(chosen.only) == std::string::npos)
      continue;
    auto measured = compare(one, chosen.how, slab);
    if (!measured)
      return tl::unexpected(measured.error());
    if (table)
      print_row(*measured);
    all.push_back(std::move(*measured));
  }
  if (all.empty())
    return fail(errc::bad_argument, "--only '{}': no line has that in its name", chosen.only);
  return chosen.json.empty() ? status{} : write_json(all, title, chosen.json);
}

} // namespace

result<options> parse_options(int argc, char **argv) {
  options out;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name != "--rounds" && name != "--mib" && name != "--only" && name != "--json")
      return fail(errc::bad_argument,
                  "unknown option '{}': --rounds N, --mib N, --only TEXT, --json FILE", name);
    if (i + 1 == argc)
      return fail(errc::bad_argument, "{} needs a value", name);
    const std::string value = argv[i + 1];
    if (name == "--only")
      out.only = value;
    else if (name == "--json")
      out.json = value;
    else {
      const auto count = number(name, value);
      if (!count)
        return tl::unexpected(count.error());
      if (name == "--rounds")
        out.how.rounds = static_cast<std::size_t>(*count);
      else
        out.how.bytes = *count << 20;
    }
  }
  return out;
}

int run(int argc, char **argv, std::string_view title, const std::vector<setting> &settings) {
  log::set_up();
  const auto chosen = parse_options(argc, argv);
  const auto done = chosen ? measure_all(*chosen, title, settings) : tl::unexpected(chosen.error());
  if (done)
    return 0;
  fmt::print(stderr, "{}: {}\n", argv[0], done.error().message);
  return done.error().code == errc::bad_argument ? 2 : 1;
}

} // namespace millrace::bench
