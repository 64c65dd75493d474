// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/feed_desks.hpp"

#include <system_error>
#include <utility>

#include "actors/node/host_codec.hpp"
#include "runtime/file.hpp"

namespace millrace {

feed_desks::feed_desks(const std::vector<std::uint32_t> &ranks, feed_desk_options options,
                       const std::shared_ptr<wait_board> &waits)
    : answer_(std::make_shared<feed_desk::reply>()) {
  for (const auto rank : ranks) {
    options.rank = rank;
    desks_.emplace(rank, std::make_shared<feed_desk>(
                             options,
                             [answer = answer_](request_id request, message parts) {
                               (*answer)(request, std::move(parts));
                             },
                             waits));
  }
}

void feed_desks::answer_through(feed_desk::reply answer) { *answer_ = std::move(answer); }

void feed_desks::ask(request_id request, const feed_question &in) {
  if (const auto desk = of(in.rank)) {
    desk->ask(request, in);
    return;
  }
  std::string ranks;
  for (const auto &[rank, desk] : desks_)
    ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
  feed_answer out;
  out.state = feed_state::refused;
  out.reason = ranks.empty()
                   ? "no trainer here is for Python: set trainer.kind = \"external\", and ask the "
                     "process that has the rank"
                   : fmt::format("rank {} is not in this process; it has: {}", in.rank, ranks);
  (*answer_)(request, encode(host_parcel{out}));
}

std::shared_ptr<feed_desk> feed_desks::of(std::uint32_t rank) const {
  const auto found = desks_.find(rank);
  return found == desks_.end() ? nullptr : found->second;
}

std::vector<std::uint32_t> feed_desks::ranks() const {
  std::vector<std::uint32_t> out;
  for (const auto &[rank, desk] : desks_)
    out.push_back(rank);
  return out;
}

void feed_desks::end(const std::optional<error> &failure) {
  for (const auto &[rank, desk] : desks_)
    desk->end(failure);
}

void feed_desks::wait_until_heard(std::chrono::milliseconds time) {
  const auto deadline = feed_desk::clock::now() + time;
  for (const auto &[rank, desk] : desks_)
    desk->wait_until_heard(deadline);
}

result<feed_endpoints> feed_endpoints::write(const std::filesystem::path &state,
                                             const std::vector<std::uint32_t> &ranks,
                                             const std::string &endpoint, const std::string &key) {
  feed_endpoints out;
  for (const auto rank : ranks) {
    auto path = state / fmt::format("trainer-{}.endpoint", rank);
    MILLRACE_TRY(write_file_atomically(path, fmt::format("{}\n{}\n", endpoint, key)));
    out.paths_.push_back(std::move(path));
  }
  return out;
}

feed_endpoints::~feed_endpoints() {
  std::error_code ignored; // one that stays leads nowhere, which is found out
  for (const auto &path : paths_)
    std::filesystem::remove(path, ignored);
}

} // namespace millrace
