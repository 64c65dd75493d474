// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schema/recording.hpp"
#include "schema/recording_counts.hpp"

namespace millrace {

/// Where an env reader's records come from. Thread: the reader's.
class record_source {
public:
  virtual ~record_source() = default;
  record_source(const record_source &) = delete;
  record_source &operator=(const record_source &) = delete;

  /// The next record, or nothing at the end.
  virtual std::optional<record> next() = 0;

  /// For messages.
  virtual const std::string &name() const noexcept = 0;
  /// Of the source, whichever reader reads it.
  virtual const std::string &source() const noexcept = 0;
  /// Of a mapped file; 0: there is none.
  virtual std::uint64_t mapped_bytes() const noexcept { return 0; }

  /// True if next() would make the first record of a new group: nothing is to be made before the
  /// group may begin. A recording cannot know, and need not.
  virtual bool begins_group() const noexcept { return false; }

  /// The rest tells what was found, once next() has returned nothing. Null: the source has not
  /// counted.
  virtual std::shared_ptr<const recording_counts> counts() const { return nullptr; }
  virtual std::vector<recording_damage> damage() const { return {}; }
  virtual bool torn() const noexcept { return false; }

  /// The run is over. Errors: those of what the source writes.
  virtual status close() { return {}; }

protected:
  record_source() = default;
};

/// A recording.
class recording_source final : public record_source {
public:
  explicit recording_source(recording_reader file) : file_(std::move(file)) {}

  std::optional<record> next() override { return file_.next(); }
  const std::string &name() const noexcept override { return file_.name(); }
  const std::string &source() const noexcept override { return file_.source(); }
  std::uint64_t mapped_bytes() const noexcept override { return file_.bytes(); }
  std::shared_ptr<const recording_counts> counts() const override {
    return file_.index() ? std::make_shared<recording_counts>(counts_of(**file_.index())) : nullptr;
  }
  std::vector<recording_damage> damage() const override { return file_.damage(); }
  bool torn() const noexcept override { return file_.torn().has_value(); }

private:
  recording_reader file_;
};

} // namespace millrace
