// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/reference_client.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "actors/scorer/hint_cache.hpp"
#include "actors/scorer/reference_answer.hpp"
#include "actors/scorer/reference_attempt.hpp"
#include "runtime/random.hpp"
#include "transport/http_client.hpp"

namespace millrace {

/// Prompts that are answered together.
struct reference_client::group {
  std::vector<reference_prompt> prompts;
  std::vector<std::vector<float>> values; ///< parallel to `prompts`
  std::size_t missing = 0;
  done then;
  std::atomic<bool> answered{false}; ///< what is left of it need not be asked
};

/// What the threads share.
struct reference_client::state {
  struct task {
    std::shared_ptr<group> of;
    std::size_t index = 0;
  };

  state(reference_options given, http_url server)
      : options(std::move(given)), url(std::move(server)), hints(options.hint_bytes) {}

  /// A thread's life.
  void run();
  std::optional<task> next_task();
  void finish(const task &what, result<std::vector<float>> values);
  /// Calls back, if nobody has.
  void settle(const std::shared_ptr<group> &what, answer with);

  result<std::vector<float>> ask(const reference_prompt &prompt, const group &of);
  result<std::vector<std::int32_t>> tokens_of(const std::string &hint, const group &of);
  /// Tries until it goes well, cannot, or has been tried often enough.
  template <class Try>
  auto persist(const group &of, Try &&once) -> decltype(once(reference_attempt{}));
  std::uint64_t next_number();
  /// False: it is time to stop.
  bool pause(std::chrono::milliseconds length);

  const reference_options options;
  const http_url url;
  stop_signal stop;

  mutable std::mutex mutex; ///< guards all that follows
  std::condition_variable changed;
  bool stopping = false;
  std::size_t running = 0; ///< threads
  std::uint64_t numbers = 0;
  std::deque<task> tasks;
  std::size_t asked = 0;                        ///< prompts under way
  std::vector<std::shared_ptr<group>> groups{}; ///< not answered
  hint_cache hints;
};

void reference_client::state::run() {
  while (const auto what = next_task())
    finish(*what, ask(what->of->prompts[what->index], *what->of));
  const std::lock_guard lock(mutex);
  --running;
  changed.notify_all();
}

std::optional<reference_client::state::task> reference_client::state::next_task() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return stopping || !tasks.empty(); });
    if (stopping)
      return std::nullopt;
    auto out = std::move(tasks.front());
    tasks.pop_front();
    if (out.of->answered)
      continue;
    ++asked;
    return out;
  }
}

void reference_client::state::finish(const task &what, result<std::vector<float>> values) {
  bool last = !values;
  {
    const std::lock_guard lock(mutex);
    --asked;
    if (values && !what.of->answered) {
      what.of->values[what.index] = std::move(*values);
      last = --what.of->missing == 0;
    }
  }
  if (last)
    settle(what.of, values ? answer(std::move(what.of->values))
                           : answer(tl::unexpected(std::move(values).error())));
}

void reference_client::state::settle(const std::shared_ptr<group> &what, answer with) {
  {
    const std::lock_guard lock(mutex);
    if (what->answered.exchange(true))
      return;
    std::erase(groups, what);
  }
  const auto then = std::exchange(what->then, nullptr);
  then(std::move(with));
}

result<std::vector<float>> reference_client::state::ask(const reference_prompt &prompt,
                                                        const group &of) {
  std::vector<std::int32_t> whole;
  std::span<const std::int32_t> tokens = prompt.tokens;
  auto hint_tokens = prompt.hint_tokens;
  if (!prompt.hint.empty()) {
    auto hint = tokens_of(prompt.hint, of);
    if (!hint)
      return tl::unexpected(std::move(hint).error());
    hint_tokens += hint->size();
    whole = std::move(*hint);
    whole.insert(whole.end(), tokens.begin(), tokens.end());
    tokens = whole;
  }
  const auto values =
      persist(of, [&](const reference_attempt &how) { return ask_logprobs(how, tokens, stop); });
  if (!values)
    return tl::unexpected(values.error());
  return branch_values(*values, hint_tokens);
}

result<std::vector<std::int32_t>> reference_client::state::tokens_of(const std::string &hint,
                                                                     const group &of) {
  {
    const std::lock_guard lock(mutex);
    if (auto known = hints.find(hint))
      return std::move(*known);
  }
  auto tokens =
      persist(of, [&](const reference_attempt &how) { return ask_tokens(how, hint, stop); });
  if (tokens) {
    const std::lock_guard lock(mutex);
    hints.add(hint, *tokens);
  }
  return tokens;
}

template <class Try>
auto reference_client::state::persist(const group &of, Try &&once)
    -> decltype(once(reference_attempt{})) {
  constexpr std::int64_t ms = 1000;
  const std::chrono::milliseconds timeout(
      static_cast<std::int64_t>(options.limits.timeout_s * double{ms}));
  for (std::uint32_t tries = 1;; ++tries) {
    const auto number = next_number();
    const auto id = fmt::format("{}{:x}-{}", reference_id_prefix, options.seed, number);
    auto got = once({.server = url,
                     .model = options.server.model,
                     .id = id,
                     .connect_timeout = std::min(options.connect_timeout, timeout),
                     .timeout = timeout});
    if (got)
      return got;
    const auto &why = got.error();
    if (!worth_another_try(why) || of.answered)
      return fail(why.code, "{}: {}", url.text(), why.message);
    if (tries > options.limits.retries)
      return fail(why.code, "{}: given up after {} tries: {}", url.text(), tries, why.message);
    constexpr std::uint32_t parts = 1024;
    const auto jitter = random_source(options.seed).derive(number).below(parts + 1);
    const bool goes_on = pause(pause_before(tries + 1, options.first_pause, options.longest_pause,
                                            double{1} * jitter / parts));
    if (!goes_on || of.answered)
      return fail(errc::conflict, "{}: not asked again after {} tries: {}", url.text(), tries,
                  why.message);
  }
}

std::uint64_t reference_client::state::next_number() {
  const std::lock_guard lock(mutex);
  return ++numbers;
}

bool reference_client::state::pause(std::chrono::milliseconds length) {
  if (options.pause)
    options.pause(length);
  std::unique_lock lock(mutex);
  return !changed.wait_for(lock, options.pause ? length * 0 : length, [&] { return stopping; });
}

reference_client::reference_client(reference_options options) {
  auto url = http_url::parse(options.server.endpoint);
  MILLRACE_ASSERT(url, "{}", url ? "" : url.error().message);
  const auto threads = std::max<std::uint32_t>(1, options.limits.concurrency);
  state_ = std::make_shared<state>(std::move(options), std::move(*url));
  state_->running = threads;
  for (std::uint32_t i = 0; i < threads; ++i)
    threads_.emplace_back([shared = state_] { shared->run(); });
}

reference_client::~reference_client() { shutdown(std::chrono::seconds(2)); }

void reference_client::ask(std::vector<reference_prompt> prompts, done then) {
  auto added = std::make_shared<group>();
  added->values.resize(prompts.size());
  added->missing = prompts.size();
  added->prompts = std::move(prompts);
  added->then = std::move(then);
  bool stopping = false;
  {
    const std::lock_guard lock(state_->mutex);
    stopping = state_->stopping;
    state_->groups.push_back(added);
    for (std::size_t i = 0; i < added->prompts.size(); ++i)
      state_->tasks.push_back({added, i});
  }
  state_->changed.notify_all();
  if (stopping)
    state_->settle(added, fail(errc::conflict, "{}: shut down", state_->url.text()));
}

std::size_t reference_client::waiting() const {
  const std::lock_guard lock(state_->mutex);
  return state_->tasks.size() + state_->asked;
}

void reference_client::shutdown(std::chrono::milliseconds within) {
  std::vector<std::shared_ptr<group>> left;
  bool ended = false;
  {
    std::unique_lock lock(state_->mutex);
    state_->stopping = true;
    state_->stop.set();
    state_->changed.notify_all();
    ended = state_->changed.wait_for(lock, within, [&] { return state_->running == 0; });
    left = state_->groups;
    state_->tasks.clear();
  }
  for (const auto &one : left)
    state_->settle(one, fail(errc::conflict, "{}: shut down", state_->url.text()));
  for (auto &thread : std::exchange(threads_, {}))
    ended ? thread.join() : thread.detach();
}

} // namespace millrace
