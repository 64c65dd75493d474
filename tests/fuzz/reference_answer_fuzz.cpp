// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "actors/scorer/reference_answer.hpp"
#include "transport/http_response.hpp"

namespace {

using namespace millrace;

constexpr std::array<std::int32_t, 3> prompt{7, 8, 9};

void check(const std::vector<float> &values) {
  MILLRACE_ASSERT(values.size() == prompt.size(), "{} values", values.size());
  for (const auto value : values)
    MILLRACE_ASSERT(std::isfinite(value) && value <= 1e-3F, "value {}", value);
}

} // namespace

/// Whatever a server sends as an HTTP answer, or as its body: there are as many finite logprobs as
/// tokens, or an error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char *>(data), size);
  constexpr std::uint64_t most_body = 10'000;
  prompt_logprobs_reader answer(prompt, "millrace-1-1");
  http_response_reader response(most_body);
  std::uint64_t body = 0;
  const http_receiver to{.head = {}, .body = [&](std::string_view piece) -> status {
                           body += piece.size();
                           return answer.feed(piece);
                         }};
  constexpr std::size_t step = 5;
  status fed;
  for (std::size_t at = 0; at < bytes.size() && fed; at += step)
    fed = response.feed(bytes.substr(at, step), to);
  MILLRACE_ASSERT(body <= most_body, "{} bytes of body", body);
  if (fed && response.finish())
    if (const auto values = answer.finish(); values)
      check(*values);

  prompt_logprobs_reader alone(prompt, "millrace-1-1");
  if (alone.feed(bytes))
    if (const auto values = alone.finish(); values)
      check(*values);
  token_list_reader tokens(8);
  if (tokens.feed(bytes))
    if (const auto ids = tokens.finish(); ids)
      MILLRACE_ASSERT(ids->size() <= 8, "{} tokens", ids->size());
  return 0;
}
