// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.hpp"
#include "transport/http_client.hpp"

namespace millrace {

/// One try of a request to a model server.
struct reference_attempt {
  http_url server;
  std::string_view model;
  std::string_view id;
  std::chrono::milliseconds connect_timeout{0};
  std::chrono::milliseconds timeout{0};
};

/// The logprobs of a whole prompt; fields as prompt_logprobs_reader gives them. Blocks.
/// Errors: those of http_post and of the reader; peer_lost also for 408, 429, 5xx and an answer
/// that ends early; not_found for 401, 403 and 404, which every request would
/// get; bad_value for another 4xx, bad_format for any other status.
result<std::vector<float>> ask_logprobs(const reference_attempt &how,
                                        std::span<const std::int32_t> prompt,
                                        const stop_signal &stop);

/// The token ids of a text, at least one. Blocks. Errors: the same.
result<std::vector<std::int32_t>> ask_tokens(const reference_attempt &how, std::string_view text,
                                             const stop_signal &stop);

/// Whether the same request may go well later.
bool worth_another_try(const error &why) noexcept;

/// How long to wait before try `next` (from 2): `first` doubled for each try, at most `longest`,
/// and of that at least half. @param jitter in [0, 1].
std::chrono::milliseconds pause_before(std::uint32_t next, std::chrono::milliseconds first,
                                       std::chrono::milliseconds longest, double jitter) noexcept;

} // namespace millrace
