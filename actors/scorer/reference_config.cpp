// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/reference_config.hpp"

#include "transport/http_url.hpp"

namespace millrace {

std::vector<error> model_server::validate(std::string_view key) const {
  std::vector<error> errors;
  if (!endpoint.empty())
    if (const auto url = http_url::parse(endpoint); !url)
      errors.push_back(
          {errc::bad_config, fmt::format("{}.endpoint = {}", key, url.error().message)});
  if (endpoint.empty() && !model.empty())
    errors.push_back(
        {errc::bad_config, fmt::format("{0}.model is set and {0}.endpoint is not: set both", key)});
  return errors;
}

std::vector<error> reference_limits::validate(std::string_view key) const {
  constexpr std::uint32_t most_requests = 1024;
  constexpr double shortest = 0.01;
  constexpr double longest = 86'400;
  constexpr std::uint32_t most_retries = 1000;
  std::vector<error> errors;
  const auto refuse = [&](std::string_view name, double value, double low, double high) {
    errors.push_back({errc::bad_config, fmt::format("{}.{} = {}: it must be from {} to {}", key,
                                                    name, value, low, high)});
  };
  if (concurrency < 1 || concurrency > most_requests)
    refuse("concurrency", concurrency, 1, most_requests);
  if (!(timeout_s >= shortest && timeout_s <= longest)) // NaN is refused here too
    refuse("timeout", timeout_s, shortest, longest);
  if (retries > most_retries)
    refuse("retries", retries, 0, most_retries);
  return errors;
}

} // namespace millrace
