// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/trainer/feed_desk.hpp"

namespace millrace {

/// The desks of a process, one for each of its ranks. Fixed once it is made. Thread: any.
class feed_desks {
public:
  /// @param ranks those of this process; none if its trainers are of another kind.
  feed_desks(const std::vector<std::uint32_t> &ranks, feed_desk_options options,
             const std::shared_ptr<wait_board> &waits);

  /// Who sends answers. Before the first question.
  void answer_through(feed_desk::reply answer);

  /// Passes it to its desk; refuses it if there is none.
  void ask(request_id request, const feed_question &in);
  /// Null: there is none.
  std::shared_ptr<feed_desk> of(std::uint32_t rank) const;
  std::vector<std::uint32_t> ranks() const;

  void end(const std::optional<error> &failure);
  void wait_until_heard(std::chrono::milliseconds time);

private:
  const std::shared_ptr<feed_desk::reply> answer_;
  std::map<std::uint32_t, std::shared_ptr<feed_desk>> desks_;
};

/// STATE/trainer-R.endpoint for ranks of this process, by which trainers in Python find it: a line
/// with the endpoint, and one with the process's public CURVE key, which may be empty. They go with
/// the object.
class feed_endpoints {
public:
  /// Errors: io, no_space.
  static result<feed_endpoints> write(const std::filesystem::path &state,
                                      const std::vector<std::uint32_t> &ranks,
                                      const std::string &endpoint, const std::string &key);
  feed_endpoints(feed_endpoints &&) = default;
  feed_endpoints &operator=(feed_endpoints &&) = delete;
  ~feed_endpoints();

private:
  feed_endpoints() = default;
  std::vector<std::filesystem::path> paths_;
};

} // namespace millrace
