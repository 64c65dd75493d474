// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "runtime/crc32c.hpp"
#include "schema/recording.hpp"

// A recording byte by byte, for what no writer writes.
namespace millrace::test {

/// The bytes of a value.
template <class T> std::string raw(const T &value) {
  return std::string(reinterpret_cast<const char *>(&value), sizeof(value));
}

inline std::string file_header() {
  recording_format::file_header header;
  header.crc = crc32c(std::as_bytes(std::span(&header, 1)).first(60));
  return raw(header);
}

/// A record whose checksums fit, whatever it says.
inline std::string raw_record(std::uint32_t kind, std::uint32_t parts, const std::string &body) {
  recording_format::record_header header;
  header.kind = kind;
  header.parts = parts;
  header.body_bytes = body.size();
  header.body_crc = crc32c(std::as_bytes(std::span(body)));
  header.crc = crc32c(std::as_bytes(std::span(&header, 1)).first(28));
  return raw(header) + body;
}

/// The part lengths at the start of a record's body.
inline std::string lengths(std::initializer_list<std::uint64_t> values) {
  std::string out;
  for (auto value : values)
    out += raw(value);
  out.resize((out.size() + 15) / 16 * 16);
  return out;
}

/// A record of these parts, which no writer has looked at.
inline std::string raw_record(record_kind kind, const message &parts) {
  std::string sizes;
  std::string filled;
  for (const auto &part : parts) {
    sizes += raw(std::uint64_t{part.size()});
    filled.append(reinterpret_cast<const char *>(part.data()), part.size());
    filled.resize((filled.size() + 15) / 16 * 16);
  }
  sizes.resize((sizes.size() + 15) / 16 * 16);
  return raw_record(static_cast<std::uint32_t>(kind), static_cast<std::uint32_t>(parts.size()),
                    sizes + filled);
}

} // namespace millrace::test
