// SPDX-License-Identifier: Apache-2.0
// Groups whose tokens a model server scores (opd, opsd).
#include <utility>

#include "actors/scorer/scorer.hpp"
#include "runtime/log.hpp"

namespace millrace {

namespace {

/// Groups whose tokens are here at a time: enough to keep a server busy while the next are fetched.
constexpr std::size_t most_jobs = 4;

reference_kind kind_of(const env_config &env) {
  return env.algorithm == "opsd" ? reference_kind::self_hinted : reference_kind::teacher;
}

} // namespace

void scorer::begin_asking() {
  while (jobs_.size() < most_jobs && !queue_.empty()) {
    const auto ref = queue_.front();
    queue_.pop_front();
    const auto found = waiting_.find(ref);
    if (found == waiting_.end())
      continue;
    jobs_.emplace(++last_job_, ref);
    const auto &group = found->second;
    tell(group.in.assembler,
         fetch_episodes{ref, reference_episodes(*group.header), self_of(*this), last_job_});
  }
}

/// Null if it was given up meanwhile.
scorer::waiting_group *scorer::group_of(std::uint64_t job) {
  const auto found = jobs_.find(job);
  const auto group = found == jobs_.end() ? waiting_.end() : waiting_.find(found->second);
  return group == waiting_.end() ? nullptr : &group->second;
}

reference_client &scorer::client_of(const env_config &env) {
  auto &client = clients_[env.teacher.endpoint + ' ' + env.teacher.model];
  if (!client) {
    reference_options options;
    options.server = env.teacher;
    options.limits = env.reference;
    client = std::make_unique<reference_client>(std::move(options));
  }
  return *client;
}

void scorer::take_episodes(const episodes_fetched &in) {
  auto *group = group_of(in.job);
  auto prompts = [&]() -> result<std::vector<reference_prompt>> {
    if (group == nullptr || !in.problem.empty())
      return fail(errc::conflict, "{}", in.problem);
    return reference_prompts(*group->header, in.episodes, kind_of(*group->env));
  }();
  if (prompts) {
    group->episodes = in.episodes;
    group->prompts = *prompts;
    client_of(*group->env)
        .ask(std::move(*prompts),
             [to = caf::actor(this), job = in.job](reference_client::answer what) {
               caf::anon_send(
                   to, reference_answered{
                           job, std::make_shared<const reference_client::answer>(std::move(what))});
             });
    return;
  }
  // An assembler that does not hold the group was told that it is settled, or offers it again.
  if (group != nullptr && in.problem.empty())
    refuse(group->in, prompts.error());
  else if (group != nullptr)
    log::warn("{}: {}; the group is left to whoever holds it", name(), in.problem);
  if (group != nullptr)
    waiting_.erase(group->in.group);
  jobs_.erase(in.job);
  begin_asking();
  show_wait();
  leave_if_idle();
}

void scorer::take_reference(const reference_answered &in) {
  const auto *group = group_of(in.job);
  if (group != nullptr && *in.what) {
    const auto reference = reference_of(group->prompts, **in.what, group->episodes);
    answer(*group, answer_link{}, &reference);
  } else if (group != nullptr) {
    const auto &why = in.what->error();
    if (why.code == errc::peer_lost || why.code == errc::timed_out)
      tell(peers_.supervisor, run_failed{name(), why});
    else
      refuse(group->in, why);
  }
  if (group != nullptr)
    waiting_.erase(jobs_.at(in.job));
  jobs_.erase(in.job);
  begin_asking();
  show_wait();
  leave_if_idle();
}

} // namespace millrace
