// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/collective/collective.hpp"

namespace millrace {

/// Ends what the ranks of a process wait for in their collectives, when nobody will come any more.
/// Thread: any.
class collective_breaker {
public:
  /// It ends with the others, at once if they have ended already. Owner: whoever made it.
  void watch(const std::shared_ptr<collective> &one);
  /// Calls it when all is to end, at once if that has been. Not to call this one.
  void on_break(std::function<void(std::string_view reason)> end);
  /// Ends all of them. The first reason stays.
  void break_all(std::string_view reason);
  bool is_broken() const;

private:
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<collective>> watched_;
  std::vector<std::function<void(std::string_view)>> ends_;
  std::optional<std::string> reason_;
};

} // namespace millrace
