// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/json_scan.hpp"
#include "runtime/json_stream.hpp"

namespace {

using namespace millrace;

/// All pieces of a text that comes `step` bytes at a time; nothing if it is refused.
std::string pieces_of(std::string_view text, std::size_t step, bool &taken, std::size_t &longest) {
  std::string out;
  json::stream_reader reader([&](const json::piece &in) -> status {
    out += static_cast<char>('0' + static_cast<int>(in.what));
    out += in.text;
    longest = std::max(longest, in.text.size());
    return {};
  });
  taken = true;
  for (std::size_t at = 0; at < text.size() && taken; at += step)
    taken = reader.feed(text.substr(at, step)).has_value();
  taken = taken && reader.finish().has_value();
  return taken ? out : std::string();
}

} // namespace

/// How the text is cut does not matter, and what is JSON is what the scanner of whole texts says:
/// but for numbers and texts, which are their taker's.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  bool whole = false;
  bool cut = false;
  std::size_t longest = 0;
  const auto a = pieces_of(text, std::max<std::size_t>(1, size), whole, longest);
  const auto b = pieces_of(text, 1, cut, longest);
  MILLRACE_ASSERT(whole == cut && a == b, "whole: '{}', by bytes: '{}'", a, b);
  MILLRACE_ASSERT(longest <= json::most_piece, "a piece of {} bytes", longest);
  if (size > json::most_piece)
    return 0; // a number may be too long for it alone
  const auto scanned = json::repair(text);
  const bool json = scanned && std::ranges::none_of(scanned->defects, [](const auto &defect) {
                      return defect.what.find("is not a JSON number") != std::string::npos;
                    });
  MILLRACE_ASSERT(whole == json, "stream: {}; scanner: {}", whole,
                  scanned ? "ok" : scanned.error().message);
  return 0;
}
