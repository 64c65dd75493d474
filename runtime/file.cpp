// SPDX-License-Identifier: Apache-2.0
#include "runtime/file.hpp"

#include "runtime/mapping.hpp"
#include "runtime/output_file.hpp"

namespace millrace {

status write_file_atomically(const std::filesystem::path &path, std::span<const std::byte> bytes) {
  auto file = output_file::create(path);
  if (!file)
    return tl::unexpected(std::move(file).error());
  MILLRACE_TRY(file->write(bytes));
  return file->finish();
}

status write_file_atomically(const std::filesystem::path &path, std::string_view text) {
  return write_file_atomically(path, std::as_bytes(std::span(text.data(), text.size())));
}

result<std::string> read_file(const std::filesystem::path &path, std::size_t most) {
  const auto file = map_file(path);
  if (!file)
    return tl::unexpected(file.error());
  if (file->size() > most)
    return fail(errc::too_large, "'{}': {} bytes, at most {} are read", path.string(), file->size(),
                most);
  return std::string(reinterpret_cast<const char *>(file->data()), file->size());
}

} // namespace millrace
