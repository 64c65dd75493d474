// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "schema/episode.hpp"

namespace millrace {

/// A finished episode as one message: part 0 says where its frames lie, small frames share one
/// slab, larger ones stay where they were. Cheap to copy; keeps its bytes alive.
class sealed_episode {
public:
  /// Joins the frames of one episode. Frames below limits::seal_copy_below are copied, once, into a
  /// slab.
  /// @param frames in the order of EpisodeFrame.frame; elements already checked at the door.
  /// Errors: bad_value if they do not make one finished episode (numbers, names, counts, node
  /// order), too_large.
  static result<sealed_episode> seal(std::vector<episode_frame> frames,
                                     const std::shared_ptr<memory_meter> &meter = nullptr);

  /// Reads a sealed episode from its parts, without copying. Elements are not checked: see
  /// check_elements. Errors: bad_format, bad_value, too_large.
  static result<sealed_episode> parse(message parts,
                                      const std::shared_ptr<memory_meter> &meter = nullptr);

  const message &parts() const noexcept { return parts_; }
  const std::vector<episode_frame> &frames() const noexcept { return frames_; }

  /// The first frame: key, id, attempt, versions.
  const wire::EpisodeFrame &head() const noexcept { return frames_.front().table(); }
  const wire::EpisodeEnd &finish() const noexcept { return *frames_.back().table().finish(); }
  std::string_view id() const noexcept { return text_of(head().episode()); }

  std::size_t trace_count() const noexcept { return traces_.size(); }
  std::uint32_t node_count(std::size_t trace) const {
    return static_cast<std::uint32_t>(traces_[trace].size());
  }
  /// Precondition: trace < trace_count(), node < node_count(trace).
  node_view node(std::size_t trace, std::size_t node) const;
  /// All nodes of one trace, in order.
  std::vector<node_view> nodes(std::size_t trace) const;
  /// Token ids over all nodes.
  std::uint64_t tokens() const noexcept { return finish().tokens(); }
  /// Bytes of all parts.
  std::uint64_t bytes() const noexcept;

private:
  struct node_place {
    std::uint32_t frame;
    std::uint32_t node;
  };

  status index_nodes();

  message parts_;
  std::vector<episode_frame> frames_;
  std::vector<std::vector<node_place>> traces_;
};

/// check_elements over all frames. Errors: bad_value, damaged.
status check_elements(const sealed_episode &episode, const element_limits &demands);

} // namespace millrace
