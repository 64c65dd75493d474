// SPDX-License-Identifier: Apache-2.0
#include "transport/credit_budget.hpp"

#include <algorithm>

#include "runtime/result.hpp"

namespace millrace {

namespace {
constexpr std::uint64_t largest_message = std::uint64_t{1} << 46; // 65,536 parts of 1 GiB
} // namespace

void credit_budget::add(sender who, rest carried) {
  remove(who);
  auto &of = accounts_[who];
  raise(of, carried.unused);
  of.exception = carried.exception;
}

credit_budget::rest credit_budget::remove(sender who) {
  const auto at = accounts_.find(who);
  if (at == accounts_.end())
    return {};
  const auto of = at->second;
  granted_ -= of.unused();
  accounts_.erase(at);
  return {.unused = of.unused(), .exception = of.exception > of.used ? of.exception - of.used : 0};
}

bool credit_budget::use(sender who, std::uint64_t bytes) {
  const auto at = accounts_.find(who);
  if (at == accounts_.end() || at->second.unused() < bytes)
    return false;
  at->second.used += bytes;
  granted_ -= bytes;
  return true;
}

void credit_budget::want(sender who, std::uint64_t absolute) {
  const auto at = accounts_.find(who);
  if (at != accounts_.end() && absolute <= at->second.credit + largest_message)
    at->second.wanted = absolute;
}

void credit_budget::raise(account &of, std::uint64_t credit) noexcept {
  granted_ += credit - of.credit;
  of.credit = credit;
}

bool credit_budget::exception_under_way() const noexcept {
  return std::any_of(accounts_.begin(), accounts_.end(),
                     [](const auto &one) { return one.second.used < one.second.exception; });
}

credit_budget::reason credit_budget::why_grant(sender who, const account &of,
                                               const state &now) const {
  const auto taken = now.held + granted_;
  const auto lacks = of.wanted - of.credit;
  if (taken <= limit_ && lacks <= limit_ - taken)
    return reason::room;
  if (of.used >= of.exception && now.held_of(who) == 0)
    return reason::alone;
  return now.hungry && !exception_under_way() ? reason::hunger : reason::none;
}

std::vector<credit_budget::sender> credit_budget::grant(const state &now) {
  std::vector<sender> grown;
  const auto free = limit_ > now.held ? limit_ - now.held : 0;
  const auto share = accounts_.empty() ? 0 : std::min(window_, free / 2 / accounts_.size());
  std::vector<sender> lacking;
  for (auto &[who, of] : accounts_) {
    if (of.unused() < share / 2 + share % 2 && granted_ + share - of.unused() <= free) {
      raise(of, of.used + share);
      grown.push_back(who);
    }
    if (of.wanted > of.credit)
      lacking.push_back(who);
  }
  std::rotate(lacking.begin(), std::upper_bound(lacking.begin(), lacking.end(), last_),
              lacking.end());
  for (const auto who : lacking) {
    auto &of = accounts_[who];
    const auto why = why_grant(who, of, now);
    if (why == reason::none)
      continue;
    if (why == reason::hunger)
      over_limit_ += of.wanted - of.credit;
    raise(of, of.wanted);
    if (why != reason::room)
      of.exception = of.credit;
    last_ = who;
    grown.push_back(who);
  }
  return grown;
}

std::uint64_t credit_budget::credit(sender who) const {
  const auto at = accounts_.find(who);
  return at == accounts_.end() ? 0 : at->second.credit;
}

bool credit_budget::starving() const noexcept {
  return std::any_of(accounts_.begin(), accounts_.end(),
                     [](const auto &one) { return one.second.wanted > one.second.credit; });
}

} // namespace millrace
