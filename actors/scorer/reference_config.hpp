// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace millrace {

/// A model behind an HTTP server that speaks as vLLM does.
struct model_server {
  /// "http://HOST:PORT"; "/v1" may follow. Default: empty, there is none. Wrong: each request
  /// fails, and after its retries the run.
  std::string endpoint;
  /// Name of the model, as the server knows it. Default: empty, the server's only one. Wrong: the
  /// server refuses (404).
  std::string model;

  bool operator==(const model_server &) const = default;
};

/// How a scorer asks such a server.
struct reference_limits {
  /// Requests in flight from each scorer. Range: 1 to 1,024. Default: 8. More: the server is used
  /// better until its batch is full, then requests wait there and time out.
  std::uint32_t concurrency = 8;
  /// For one try of one request, from the connection to the last byte. Unit: seconds. Range: 0.01
  /// to 86,400. Default: 300. Too short: long prompts are never answered; too long: a server that
  /// hangs is noticed late.
  double timeout_s = 300;
  /// Tries after the first of a request that the server did not answer, or answered with 408, 429
  /// or 5xx; 0.2 s, then twice as long each time, to 10 s, lie between them. Range: 0 to 1,000.
  /// Default: 8, which is 16 to 33 s if nobody listens. Fewer: a server that restarts ends the run;
  /// more: one that is gone is given up late.
  std::uint32_t retries = 8;

  bool operator==(const reference_limits &) const = default;
};

} // namespace millrace
