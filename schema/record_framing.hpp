// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/frame.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// The layout of a recording; the planner's log has the same with a magic of its own. Source:
/// docs/formats.md, "Recording (.mrec)". All little-endian.
namespace recording_format {
inline constexpr std::array<char, 8> file_magic{'\x89', 'M', 'R', 'E', 'C', '\r', '\n', '\x1a'};
inline constexpr std::array<char, 8> record_magic{'\xab', 'r', 'e', 'c', 'o', 'r', 'd', '\xbb'};
inline constexpr std::uint32_t version = 1;
inline constexpr std::size_t alignment = 16; ///< of records and of their parts
inline constexpr std::size_t source_bytes = 40;

struct file_header {
  std::array<char, 8> magic = file_magic;
  std::uint32_t version = recording_format::version;
  std::uint32_t flags = 0;                 ///< none is defined; a file with others is refused
  std::array<char, source_bytes> source{}; ///< name of the source, UTF-8, zero-padded
  std::uint32_t reserved = 0;
  std::uint32_t crc = 0; ///< CRC-32C of the 60 bytes before it
};
static_assert(sizeof(file_header) == 64);

struct record_header {
  std::array<char, 8> magic = record_magic;
  std::uint32_t kind = 0;
  std::uint32_t parts = 0;
  std::uint64_t body_bytes = 0; ///< from the end of this header to the next: a multiple of 16
  std::uint32_t body_crc = 0;   ///< CRC-32C of those bytes: part lengths, parts, filling
  std::uint32_t crc = 0;        ///< CRC-32C of the 28 bytes before it
};
static_assert(sizeof(record_header) == 32);
static_assert(std::endian::native == std::endian::little);
} // namespace recording_format

/// The end of a file that was still being written: a record that runs past the end.
struct torn_tail {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// The header of a file: `source` is cut to 40 bytes at a character.
recording_format::file_header file_header_of(std::array<char, 8> magic, std::string_view source);
/// What file_header::crc must be.
std::uint32_t crc_of(const recording_format::file_header &header) noexcept;

/// A record as it stands in a file: header, then body (part lengths, parts, filling). Nothing is
/// copied: the parts must outlive it. Precondition: their number fits 32 bits.
class framed_record {
public:
  framed_record(std::uint32_t kind, const message &parts);
  framed_record(const framed_record &) = delete; // spans point into it
  framed_record &operator=(const framed_record &) = delete;

  std::span<const std::byte> header() const noexcept;
  std::span<const std::span<const std::byte>> body() const noexcept { return body_; }
  /// Header and body.
  std::uint64_t bytes() const noexcept { return sizeof(header_) + header_.body_bytes; }

private:
  recording_format::record_header header_;
  std::vector<std::uint64_t> lengths_;
  std::vector<std::span<const std::byte>> body_;
};

/// True if one of them is the beginning of the other and neither is empty.
bool starts_alike(std::span<const std::byte> bytes, std::span<const char> magic) noexcept;

/// The header at `offset` of a file, if one stands there that fits its checksum. What it says about
/// lengths may still be more than the file has.
std::optional<recording_format::record_header> header_at(std::span<const std::byte> file,
                                                         std::uint64_t offset) noexcept;

/// Where the first valid header from `offset` on stands, at any byte: damage may have moved it. The
/// size of the file if there is none.
std::uint64_t next_header_after(std::span<const std::byte> file, std::uint64_t offset) noexcept;

/// True if a record with this header at `offset` ends within the file.
bool fits(const recording_format::record_header &header, std::uint64_t offset,
          std::uint64_t file_bytes) noexcept;

/// The parts of a record, once its body fits its checksum and its lengths; they lie in `file` and
/// keep it alive. `name` stands for the kind in messages. Precondition: fits(). Errors: damaged.
result<message> parts_of(const frame &file, std::uint64_t offset,
                         const recording_format::record_header &header, std::size_t most_parts,
                         std::string_view name);

} // namespace millrace
