// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "actors/scorer/reference_config.hpp"
#include "actors/scorer/reference_request.hpp"
#include "runtime/result.hpp"

namespace millrace {

struct reference_options {
  model_server server;
  reference_limits limits;
  std::uint64_t seed = 0; ///< of the jitter between tries, and of the requests' ids
  std::chrono::milliseconds connect_timeout{5000};
  std::chrono::milliseconds first_pause{200}; ///< before the second try, then twice as long each
  std::chrono::milliseconds longest_pause{10'000};
  /// Bytes of tokenized hints that are kept.
  std::size_t hint_bytes = std::size_t{16} << 20;
  /// For tests: gets each pause in place of waiting for so long.
  std::function<void(std::chrono::milliseconds)> pause{};
};

/// Asks a model server for the logprobs of tokens (opd, opsd): for each prompt POST
/// /v1/completions with prompt_logprobs, before it POST /tokenize for a hint whose ids are not
/// known. limits.concurrency threads, each with one request under way and a connection of its own.
///
/// A request that gets no answer, or 408, 429 or 5xx, is tried again, limits.retries times. Other
/// statuses, and answers that are not what was asked for, are final: a server that lies once is not
/// asked until it lies better. What an answer may hold is bounded by its prompt.
///
/// Thread: any. Owner: whoever asks; the destructor is shutdown() within two seconds.
class reference_client {
public:
  /// For each prompt of a group, in order, one value for each token of its branch
  /// (branch_values()); or the first error of one of them, with endpoint, tries and last reason:
  /// peer_lost, timed_out (no answer after all tries), bad_value, bad_format, too_large,
  /// unsupported (what came is not an answer), not_found (401, 403, 404), io, conflict (shut down).
  using answer = result<std::vector<std::vector<float>>>;
  using done = std::function<void(answer)>;

  /// Precondition: options.server has a valid endpoint.
  explicit reference_client(reference_options options);
  ~reference_client();
  reference_client(const reference_client &) = delete;
  reference_client &operator=(const reference_client &) = delete;

  /// Asks for a group, of at least one prompt. Does not block. `then` is called exactly once, from
  /// a thread of the client or of shutdown(), and must not block or call back into the client;
  /// after the first error what is left of the group is not asked any more.
  void ask(std::vector<reference_prompt> prompts, done then);

  /// Prompts that are asked or wait for their turn.
  std::size_t waiting() const;

  /// Interrupts all requests and ends all threads; each group that is not answered gets an error
  /// before this returns. A thread that hangs beyond `within` (in a name's resolution) is left
  /// behind; it calls nobody any more.
  void shutdown(std::chrono::milliseconds within);

private:
  struct group;
  struct state;

  std::shared_ptr<state> state_; ///< threads that are left behind hold it too
  std::vector<std::thread> threads_;
};

} // namespace millrace
