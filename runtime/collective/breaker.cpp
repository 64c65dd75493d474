// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/breaker.hpp"

#include <utility>

namespace millrace {

void collective_breaker::watch(const std::shared_ptr<collective> &one) {
  const std::lock_guard lock(mutex_);
  std::erase_if(watched_, [](const auto &other) { return other.expired(); });
  watched_.push_back(one);
  if (reason_)
    one->abort(*reason_);
}

void collective_breaker::on_break(std::function<void(std::string_view reason)> end) {
  const std::lock_guard lock(mutex_);
  if (reason_)
    end(*reason_);
  ends_.push_back(std::move(end));
}

void collective_breaker::break_all(std::string_view reason) {
  const std::lock_guard lock(mutex_);
  if (!reason_)
    reason_ = reason;
  for (const auto &one : watched_)
    if (const auto here = one.lock())
      here->abort(*reason_);
  for (const auto &end : ends_)
    end(*reason_);
}

bool collective_breaker::is_broken() const {
  const std::lock_guard lock(mutex_);
  return reason_.has_value();
}

} // namespace millrace
