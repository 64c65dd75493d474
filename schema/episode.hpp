// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schema/node.hpp"

namespace millrace {

/// What names a group, as values. Source: docs/formats.md, GroupKey.
struct group_key {
  std::string run;
  std::string env;
  std::string task;
  std::string group;

  auto operator<=>(const group_key &) const = default;
  /// "env/task/group" and the run, for messages.
  std::string text() const;
};
group_key key_of(const wire::GroupKey &key);
flatbuffers::Offset<wire::GroupKey> create_key(flatbuffers::FlatBufferBuilder &builder,
                                               const group_key &key);

/// One message of an episode: its FlatBuffer and the parts that the FlatBuffer describes. Cheap to
/// copy.
class episode_frame {
public:
  /// The structure level: the body verifies, every array lies in parts of its own and fits its
  /// shape.
  /// Errors: bad_format, bad_value, too_large.
  static result<episode_frame> parse(message parts,
                                     const std::shared_ptr<memory_meter> &meter = nullptr);

  const wire::EpisodeFrame &table() const noexcept { return *body_; }
  const message &parts() const noexcept { return parts_; }
  std::uint32_t node_count() const noexcept;
  /// The spans of one node, valid while this frame or a copy of it lives. Precondition: i <
  /// node_count().
  node_view node(std::uint32_t i) const;
  std::uint64_t bytes() const noexcept;

private:
  episode_frame(body<wire::EpisodeFrame> table, message parts)
      : body_(std::move(table)), parts_(std::move(parts)) {}

  body<wire::EpisodeFrame> body_;
  message parts_;
};

/// False if a name of the key or the episode's id is over limits::name_bytes: then the frame names
/// no episode that one could report.
bool has_usable_names(const wire::EpisodeFrame &frame) noexcept;

/// What the door (reader or importer) demands of a frame.
struct element_limits {
  std::uint32_t vocab_size = 0; ///< ids must be below it; 0: any non-negative id
  /// What an episode for training must say of who sampled it (EpisodeFrame.frozen); nothing:
  /// either.
  std::optional<bool> frozen{};
  /// Each trace of an episode for training that is ok, and whose agent is trained, has a hint.
  bool hints = false;
};

/// The element level, once, at the door: names are there, every node passes check_node, parents
/// come earlier than children, arrays fit their checksums, finish counts are sane, rewards are
/// finite. The message names episode, trace, node and field. Errors: bad_value, damaged.
status check_elements(const episode_frame &frame, const element_limits &demands);

} // namespace millrace
