// SPDX-License-Identifier: Apache-2.0
#include "schema/record_framing.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/crc32c.hpp"
#include "runtime/utf8.hpp"

namespace millrace {

namespace format = recording_format;

namespace {

constexpr std::array<std::byte, format::alignment> zeros{};

template <class T> std::span<const std::byte> bytes_of(const T &value) {
  return std::as_bytes(std::span(&value, 1));
}

template <class T> T read_as(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

/// Zeros that bring `size` bytes to the alignment.
std::span<const std::byte> filling_after(std::size_t size) {
  return std::span(zeros).first((format::alignment - size % format::alignment) % format::alignment);
}

} // namespace

std::uint32_t crc_of(const format::file_header &header) noexcept {
  return crc32c(bytes_of(header).first(sizeof(header) - sizeof(header.crc)));
}

format::file_header file_header_of(std::array<char, 8> magic, std::string_view source) {
  format::file_header header;
  header.magic = magic;
  const auto name = utf8_prefix(source, header.source.size());
  std::copy(name.begin(), name.end(), header.source.begin());
  header.crc = crc_of(header);
  return header;
}

framed_record::framed_record(std::uint32_t kind, const message &parts) {
  lengths_.reserve(parts.size());
  for (const auto &part : parts)
    lengths_.push_back(part.size());
  body_.reserve(2 * (parts.size() + 1));
  const auto add = [this](std::span<const std::byte> bytes) {
    for (const auto piece : {bytes, filling_after(bytes.size())}) {
      header_.body_bytes += piece.size();
      header_.body_crc = crc32c(piece, header_.body_crc);
      if (!piece.empty())
        body_.push_back(piece);
    }
  };
  add(std::as_bytes(std::span(lengths_)));
  for (const auto &part : parts)
    add(part.bytes());
  header_.kind = kind;
  header_.parts = static_cast<std::uint32_t>(parts.size());
  header_.crc = crc32c(bytes_of(header_).first(sizeof(header_) - sizeof(header_.crc)));
}

std::span<const std::byte> framed_record::header() const noexcept { return bytes_of(header_); }

bool starts_alike(std::span<const std::byte> bytes, std::span<const char> magic) noexcept {
  const auto n = std::min(bytes.size(), magic.size());
  return n > 0 && std::memcmp(bytes.data(), magic.data(), n) == 0;
}

std::optional<format::record_header> header_at(std::span<const std::byte> file,
                                               std::uint64_t offset) noexcept {
  if (offset > file.size() || file.size() - offset < sizeof(format::record_header))
    return std::nullopt;
  const auto bytes = file.subspan(offset, sizeof(format::record_header));
  if (!starts_alike(bytes, format::record_magic))
    return std::nullopt;
  const auto header = read_as<format::record_header>(bytes);
  if (crc32c(bytes.first(sizeof(header) - sizeof(header.crc))) != header.crc)
    return std::nullopt;
  return header;
}

std::uint64_t next_header_after(std::span<const std::byte> file, std::uint64_t offset) noexcept {
  const auto *data = reinterpret_cast<const char *>(file.data());
  while (offset < file.size()) {
    const auto *found = static_cast<const char *>(::memmem(data + offset, file.size() - offset,
                                                           format::record_magic.data(),
                                                           format::record_magic.size()));
    if (found == nullptr)
      break;
    offset = static_cast<std::uint64_t>(found - data);
    if (header_at(file, offset))
      return offset;
    ++offset;
  }
  return file.size();
}

bool fits(const format::record_header &header, std::uint64_t offset,
          std::uint64_t file_bytes) noexcept {
  return header.body_bytes <= file_bytes - offset - sizeof(header);
}

result<message> parts_of(const frame &file, std::uint64_t offset,
                         const format::record_header &header, std::size_t most_parts,
                         std::string_view name) {
  const auto body = file.sub(offset + sizeof(header), header.body_bytes);
  if (const auto crc = crc32c(body.bytes()); crc != header.body_crc)
    return fail(errc::damaged, "a {} record has checksum {:08x}, expected {:08x}", name, crc,
                header.body_crc);
  const std::uint64_t lengths = std::uint64_t{header.parts} * sizeof(std::uint64_t);
  if (header.parts == 0 || header.parts > most_parts || lengths > body.size())
    return fail(errc::damaged, "a {} record of {} parts in {} bytes", name, header.parts,
                body.size());

  message out;
  out.reserve(header.parts);
  constexpr std::uint64_t step = format::alignment;
  std::uint64_t at = (lengths + step - 1) / step * step;
  for (std::uint32_t i = 0; i < header.parts; ++i) {
    const auto size = read_as<std::uint64_t>(body.bytes().subspan(i * sizeof(std::uint64_t)));
    if (at > body.size() || size > body.size() - at)
      return fail(errc::damaged, "part {} of a {} record, {} bytes, lies outside it", i, name,
                  size);
    out.push_back(body.sub(at, size));
    at += (size + step - 1) / step * step;
  }
  if (at != body.size())
    return fail(errc::damaged, "a {} record of {} bytes has parts of {}", name, body.size(), at);
  return out;
}

} // namespace millrace
