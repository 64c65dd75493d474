// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/reference_attempt.hpp"

#include <algorithm>
#include <array>

#include "actors/scorer/reference_answer.hpp"
#include "actors/scorer/reference_request.hpp"
#include "runtime/utf8.hpp"

namespace millrace {

namespace {

/// What an answer may hold: its fixed parts, and for each token of the prompt an object with the
/// token's text as JSON, which escapes a character as 6 or 12 bytes.
constexpr std::uint64_t answer_bytes = std::uint64_t{256} << 10;
constexpr std::uint64_t bytes_per_token = 2048;
constexpr std::uint64_t most_answer_bytes = std::uint64_t{4} << 30;

/// What a body says, on one line; of one that is not an answer.
class short_text {
public:
  void take(std::string_view piece) {
    constexpr std::size_t most = 300;
    text_.append(piece.substr(0, most - std::min(most, text_.size())));
  }
  std::string shown() const { return text_.empty() ? "" : ": " + to_one_line(text_); }

private:
  std::string text_;
};

bool is_json(std::string_view content_type) {
  const auto name = content_type.substr(0, content_type.find_first_of("; \t"));
  constexpr std::string_view json = "application/json";
  return std::ranges::equal(
      name, json, [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
}

tl::unexpected<error> refused(int code, const short_text &text) {
  constexpr int timeout = 408;
  constexpr int too_many = 429;
  constexpr std::array of_all_requests{401, 403, 404};
  const auto kind = code >= 500 || code == timeout || code == too_many ? errc::peer_lost
                    : std::ranges::count(of_all_requests, code) > 0    ? errc::not_found
                    : code >= 400                                      ? errc::bad_value
                                                                       : errc::bad_format;
  return fail(kind, "the server answers {}{}", code, text.shown());
}

/// Posts, and lets `reader` have the body of a good answer.
template <class Reader>
status post(const reference_attempt &how, std::string_view path, const std::string &body,
            std::uint64_t most_body, Reader &reader, const stop_signal &stop) {
  int code = 0;
  short_text text;
  const http_receiver to{.head = [&](const http_head &head) -> status {
                           code = head.status;
                           if (code == 200 && !is_json(head.content_type))
                             return fail(errc::bad_format,
                                         "the answer's content-type is '{}', not application/json",
                                         to_one_line(head.content_type.substr(0, 80)));
                           return {};
                         },
                         .body = [&](std::string_view piece) -> status {
                           if (code == 200)
                             return reader.feed(piece);
                           text.take(piece);
                           return {};
                         }};
  const auto posted = http_post({.server = how.server,
                                 .path = path,
                                 .id = how.id,
                                 .body = body,
                                 .connect_timeout = how.connect_timeout,
                                 .timeout = how.timeout,
                                 .most_body = most_body},
                                to, stop);
  if (code != 0 && code != 200 && (posted || posted.error().code != errc::conflict))
    return refused(code, text);
  MILLRACE_TRY(posted);
  if (!reader.complete())
    return fail(errc::peer_lost, "the answer ends before its JSON does");
  return {};
}

} // namespace

result<std::vector<float>> ask_logprobs(const reference_attempt &how,
                                        std::span<const std::int32_t> prompt,
                                        const stop_signal &stop) {
  prompt_logprobs_reader reader(prompt, how.id);
  const auto most = std::min(most_answer_bytes, answer_bytes + bytes_per_token * prompt.size());
  MILLRACE_TRY(
      post(how, "/v1/completions", completion_body(how.model, prompt), most, reader, stop));
  return reader.finish();
}

result<std::vector<std::int32_t>> ask_tokens(const reference_attempt &how, std::string_view text,
                                             const stop_signal &stop) {
  constexpr std::size_t longest_id = 12; // with its comma
  const auto most = text.size() + 64;    // no token is shorter than a byte; a few are added
  token_list_reader reader(most);
  MILLRACE_TRY(post(how, "/tokenize", tokenize_body(how.model, text),
                    answer_bytes + longest_id * most, reader, stop));
  auto tokens = reader.finish();
  if (tokens && tokens->empty())
    return fail(errc::bad_value, "a hint of {} bytes has no tokens", text.size());
  return tokens;
}

bool worth_another_try(const error &why) noexcept {
  return why.code == errc::peer_lost || why.code == errc::timed_out || why.code == errc::io;
}

std::chrono::milliseconds pause_before(std::uint32_t next, std::chrono::milliseconds first,
                                       std::chrono::milliseconds longest, double jitter) noexcept {
  auto full = std::min(first, longest);
  for (std::uint32_t i = 2; i < next && full < longest; ++i)
    full = std::min(full * 2, longest);
  const auto half = full / 2;
  return half + std::chrono::milliseconds(static_cast<std::int64_t>(
                    static_cast<double>((full - half).count()) * std::clamp(jitter, 0.0, 1.0)));
}

} // namespace millrace
