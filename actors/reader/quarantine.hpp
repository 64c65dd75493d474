// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>

#include "runtime/result.hpp"

namespace millrace {

/// One thing that the door refused.
struct refusal {
  std::string_view source;  ///< name of the recording
  std::uint64_t offset = 0; ///< of the record in it
  std::uint64_t bytes = 0;  ///< of the record's parts
  std::string_view group;   ///< text of the key, empty if the record does not say
  std::string_view episode; ///< empty if the record does not say
  std::string_view reason;
};

/// A file with one JSON line for each refusal. It appears with the first one. The bytes themselves
/// stay where they are: in the recording, at the offset that the line names. Thread: any.
class quarantine {
public:
  explicit quarantine(std::filesystem::path path) : path_(std::move(path)) {}

  /// Errors: io.
  status add(const refusal &what);

  std::uint64_t count() const;
  const std::filesystem::path &path() const noexcept { return path_; }

private:
  const std::filesystem::path path_;
  mutable std::mutex mutex_;
  std::ofstream file_;
  std::uint64_t count_ = 0;
};

} // namespace millrace
