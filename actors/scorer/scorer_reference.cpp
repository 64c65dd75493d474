// SPDX-License-Identifier: Apache-2.0
// Groups whose tokens a model server scores (opd, opsd).
#include <random>
#include <utility>

#include "actors/scorer/scorer.hpp"
#include "runtime/log.hpp"

namespace millrace {

namespace {

/// Groups whose tokens are here at a time: enough to keep a server busy while the next are fetched.
constexpr std::size_t most_jobs = 4;

/// A server that is gone, is not what the config says, or cannot be reached for want of something
/// here would cost every group.
bool concerns_one_group(const error &why) {
  return why.code != errc::peer_lost && why.code != errc::timed_out &&
         why.code != errc::not_found && why.code != errc::io;
}

reference_kind kind_of(const env_config &env) {
  return env.algorithm == "opsd" ? reference_kind::self_hinted : reference_kind::teacher;
}

} // namespace

/// A turn comes more than once when the planner has started again.
void scorer::enqueue(waiting_group &group) {
  if (!group.queued && group.job == 0)
    queue_.push_back(group.in.group);
  group.queued = group.job == 0;
}

void scorer::begin_asking() {
  while (jobs_.size() < most_jobs && !queue_.empty()) {
    const auto ref = queue_.front();
    queue_.pop_front();
    const auto found = waiting_.find(ref);
    if (found == waiting_.end() || !found->second.queued)
      continue;
    auto &group = found->second;
    group.queued = false;
    group.job = ++last_job_;
    jobs_.emplace(group.job, reference_job{ref, group.in.assembler});
    tell(group.in.assembler,
         fetch_episodes{ref, reference_episodes(*group.header), self_of(*this), group.job});
  }
}

/// Null if it was given up meanwhile, or has another job.
scorer::waiting_group *scorer::group_of(std::uint64_t job) {
  const auto found = jobs_.find(job);
  const auto group = found == jobs_.end() ? waiting_.end() : waiting_.find(found->second.group);
  return group == waiting_.end() || group->second.job != job ? nullptr : &group->second;
}

/// Its group waits for another, if another assembler has offered it since.
void scorer::end_job(std::uint64_t job) {
  if (auto *group = group_of(job)) {
    group->job = 0;
    enqueue(*group);
  }
  jobs_.erase(job);
}

void scorer::ask_own_client(const env_config &env, std::vector<reference_prompt> prompts,
                            reference_client::done then) {
  const auto &limits = env.reference;
  auto &client = clients_[fmt::format("{} {} {} {} {}", env.teacher.endpoint, env.teacher.model,
                                      limits.concurrency, limits.timeout_s, limits.retries)];
  if (!client) {
    reference_options options;
    options.server = env.teacher;
    options.limits = limits;
    // A server may take two requests of one id for one: ids differ between all clients and starts.
    options.seed = (std::uint64_t{std::random_device()()} << 32U) | std::random_device()();
    client = std::make_unique<reference_client>(std::move(options));
  }
  client->ask(std::move(prompts), std::move(then));
}

void scorer::take_episodes(const episodes_fetched &in) {
  auto *group = group_of(in.job);
  if (group != nullptr && !jobs_.at(in.job).server.empty())
    return; // they are here
  auto prompts = [&]() -> result<std::vector<reference_prompt>> {
    if (group == nullptr || !in.problem.empty())
      return fail(errc::conflict, "{}", in.problem);
    return reference_prompts(*group->header, in.episodes, kind_of(*group->env));
  }();
  if (prompts) {
    auto &job = jobs_.at(in.job);
    job.server = group->env->teacher.endpoint;
    job.episodes = in.episodes;
    for (const auto &one : *prompts)
      job.prompts.push_back({.episode = one.episode, .trace = one.trace, .branch = one.branch});
    show_wait();
    auto then = [to = caf::actor(this), job = in.job](reference_client::answer what) {
      caf::anon_send(to, reference_answered{job, std::make_shared<const reference_client::answer>(
                                                     std::move(what))});
    };
    if (ask_)
      ask_(*group->env, std::move(*prompts), std::move(then));
    else
      ask_own_client(*group->env, std::move(*prompts), std::move(then));
    return;
  }
  // An assembler that does not hold the group was told that it is settled, or offers it again.
  if (group != nullptr && in.problem.empty())
    refuse(group->in, prompts.error());
  else if (group != nullptr)
    log::warn("{}: {}; the group is left to whoever holds it", name(), in.problem);
  if (group != nullptr && (in.problem.empty() || group->in.assembler == jobs_.at(in.job).assembler))
    waiting_.erase(group->in.group);
  end_job(in.job);
  begin_asking();
  show_wait();
  leave_if_idle();
}

void scorer::take_reference(const reference_answered &in) {
  const auto *group = group_of(in.job);
  if (group != nullptr && *in.what) {
    const auto &job = jobs_.at(in.job);
    const auto reference = reference_of(job.prompts, **in.what, job.episodes);
    answer(*group, answer_link{}, &reference);
  } else if (group != nullptr) {
    const auto &why = in.what->error();
    if (concerns_one_group(why))
      refuse(group->in, why);
    else
      tell(peers_.supervisor, run_failed{name(), why});
  }
  if (group != nullptr)
    waiting_.erase(group->in.group);
  end_job(in.job);
  begin_asking();
  show_wait();
  leave_if_idle();
}

} // namespace millrace
