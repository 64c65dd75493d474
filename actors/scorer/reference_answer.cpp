// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/reference_answer.hpp"

#include <charconv>
#include <cmath>

#include "runtime/utf8.hpp"

namespace millrace {

namespace {

using kind = json::piece::kind;

bool begins(const json::piece &in) {
  return in.what == kind::begin_object || in.what == kind::begin_array;
}
bool ends(const json::piece &in) {
  return in.what == kind::end_object || in.what == kind::end_array;
}

/// A value of another type than it should be, for a message.
std::string shown(const json::piece &in) {
  switch (in.what) {
  case kind::begin_object:
    return "an object";
  case kind::begin_array:
    return "a list";
  case kind::null:
    return "null";
  case kind::text:
    return "a string";
  default:
    return to_one_line(in.text.substr(0, 40));
  }
}

/// Whether `text` holds `id`, and not as the start of a longer number.
bool holds(std::string_view text, std::string_view id) {
  const auto at = text.find(id);
  if (at == std::string_view::npos)
    return false;
  const auto after = at + id.size();
  return after == text.size() || text[after] < '0' || text[after] > '9';
}

} // namespace

prompt_logprobs_reader::prompt_logprobs_reader(std::span<const std::int32_t> prompt,
                                               std::string_view id)
    : prompt_(prompt), id_(id), stream_([this](const json::piece &in) { return take(in); }) {
  MILLRACE_ASSERT(!prompt.empty(), "a prompt without tokens");
  values_.reserve(prompt.size());
}

status prompt_logprobs_reader::feed(std::string_view bytes) {
  auto fed = stream_.feed(bytes);
  return fed || where().empty() ? fed
                                : tl::unexpected(with_context(std::move(fed).error(), where()));
}

result<std::vector<float>> prompt_logprobs_reader::finish() {
  MILLRACE_TRY(stream_.finish());
  if (!saw_positions_)
    return fail(errc::bad_value, "the answer has no {}",
                saw_choice_ ? "choices[0].prompt_logprobs" : "choices[0]");
  return std::move(values_);
}

std::string prompt_logprobs_reader::where() const {
  if (place_ == place::positions || place_ == place::position || place_ == place::entry)
    return fmt::format("prompt_logprobs[{}]", values_.size());
  return {};
}

void prompt_logprobs_reader::pass(const json::piece &in) {
  if (begins(in))
    passing_ = 1;
}

status prompt_logprobs_reader::once(bool &seen, std::string_view name) {
  if (seen)
    return fail(errc::bad_value, "'{}' stands there twice", name);
  seen = true;
  return {};
}

status prompt_logprobs_reader::take(const json::piece &in) {
  if (passing_ > 0) {
    passing_ = passing_ + (begins(in) ? 1U : 0U) - (ends(in) ? 1U : 0U);
    return {};
  }
  if (in.what == kind::key) {
    key_ = in.text;
    return {};
  }
  switch (place_) {
  case place::outside:
    if (in.what != kind::begin_object)
      return fail(errc::bad_value, "the answer is {}, not an object", shown(in));
    place_ = place::answer;
    return {};
  case place::answer:
    return take_answer(in);
  case place::choices:
    return take_choices(in);
  case place::choice:
    return take_choice(in);
  case place::positions:
    return take_positions(in);
  case place::position:
    return take_position(in);
  case place::entry:
    return take_entry(in);
  }
  return {};
}

status prompt_logprobs_reader::take_answer(const json::piece &in) {
  if (in.what == kind::end_object) {
    place_ = place::outside;
    return {};
  }
  if (key_ == "id") {
    MILLRACE_TRY(once(saw_id_, "id"));
    if (in.what == kind::text)
      return take_id(in.text);
  }
  if (key_ != "choices") {
    pass(in);
    return {};
  }
  MILLRACE_TRY(once(saw_choices_, "choices"));
  if (in.what != kind::begin_array)
    return fail(errc::bad_value, "choices is {}, not a list", shown(in));
  place_ = place::choices;
  return {};
}

status prompt_logprobs_reader::take_id(std::string_view found) {
  if (found.find(reference_id_prefix) == std::string_view::npos || holds(found, id_))
    return {};
  return fail(errc::bad_value, "it answers request '{}', not '{}'",
              to_one_line(found.substr(0, 80)), id_);
}

status prompt_logprobs_reader::take_choices(const json::piece &in) {
  if (in.what == kind::end_array) {
    place_ = place::answer;
    return {};
  }
  if (in.what != kind::begin_object)
    return fail(errc::bad_value, "choices[0] is {}, not an object", shown(in));
  if (saw_choice_)
    return fail(errc::bad_value, "there are two choices, one was asked for");
  saw_choice_ = true;
  place_ = place::choice;
  return {};
}

status prompt_logprobs_reader::take_choice(const json::piece &in) {
  if (in.what == kind::end_object) {
    place_ = place::choices;
    return {};
  }
  if (key_ != "prompt_logprobs") {
    pass(in);
    return {};
  }
  MILLRACE_TRY(once(saw_positions_, "prompt_logprobs"));
  if (in.what != kind::begin_array)
    return fail(errc::bad_value, "prompt_logprobs is {}, not a list", shown(in));
  place_ = place::positions;
  return {};
}

status prompt_logprobs_reader::take_positions(const json::piece &in) {
  if (in.what == kind::end_array) {
    if (values_.size() != prompt_.size())
      return fail(errc::bad_value, "the list ends there, the prompt has {} tokens", prompt_.size());
    place_ = place::choice;
    return {};
  }
  if (values_.size() == prompt_.size())
    return fail(errc::bad_value, "the list goes on, the prompt has {} tokens", prompt_.size());
  if (values_.empty()) {
    if (in.what != kind::null)
      return fail(errc::bad_value,
                  "it is {}, and nothing comes before the first token: null is due", shown(in));
    values_.push_back(0.0F);
    return {};
  }
  if (in.what != kind::begin_object)
    return fail(errc::bad_value, "it is {}, not an object", shown(in));
  saw_token_ = false;
  place_ = place::position;
  return {};
}

status prompt_logprobs_reader::take_position(const json::piece &in) {
  const auto token = prompt_[values_.size()];
  if (in.what == kind::end_object) {
    if (!saw_token_)
      return fail(errc::bad_value,
                  "it has no logprob of token {}: the answer is for another prompt", token);
    values_.push_back(last_);
    place_ = place::positions;
    return {};
  }
  std::int32_t found = -1;
  const auto *const end = key_.data() + key_.size();
  const auto read = std::from_chars(key_.data(), end, found);
  if (read.ec != std::errc{} || read.ptr != end || found != token) {
    pass(in);
    return {};
  }
  MILLRACE_TRY(once(saw_token_, key_));
  if (in.what != kind::begin_object)
    return fail(errc::bad_value, "token {} is {}, not an object", token, shown(in));
  saw_logprob_ = false;
  place_ = place::entry;
  return {};
}

status prompt_logprobs_reader::take_entry(const json::piece &in) {
  if (in.what == kind::end_object) {
    if (!saw_logprob_)
      return fail(errc::bad_value, "token {} has no logprob", prompt_[values_.size()]);
    place_ = place::position;
    return {};
  }
  if (key_ == "logprob")
    return take_logprob(in);
  pass(in);
  return {};
}

status prompt_logprobs_reader::take_logprob(const json::piece &in) {
  constexpr double rounding = 1e-3;             // a server that rounds may pass 0 by a little
  constexpr double instead_of_infinity = -9999; // vLLM: JSON has no -inf
  MILLRACE_TRY(once(saw_logprob_, "logprob"));
  if (in.what != kind::number)
    return fail(errc::bad_value, "logprob is {}, not a number", shown(in));
  double value = 0;
  const auto read = std::from_chars(in.text.data(), in.text.data() + in.text.size(), value);
  if (read.ec != std::errc{} || !std::isfinite(static_cast<float>(value)))
    return fail(errc::bad_value, "logprob {} is not finite", shown(in));
  if (value <= instead_of_infinity)
    return fail(errc::bad_value, "{} is what a server gives in place of -inf", value);
  if (value > rounding)
    return fail(errc::bad_value, "{} is above 0: no logprob (does the server give logits?)", value);
  last_ = static_cast<float>(value);
  return {};
}

token_list_reader::token_list_reader(std::size_t most)
    : most_(most), stream_([this](const json::piece &in) { return take(in); }) {}

status token_list_reader::feed(std::string_view bytes) { return stream_.feed(bytes); }

result<std::vector<std::int32_t>> token_list_reader::finish() {
  MILLRACE_TRY(stream_.finish());
  if (!seen_)
    return fail(errc::bad_value, "the answer has no tokens");
  return std::move(tokens_);
}

status token_list_reader::take(const json::piece &in) {
  if (depth_ == 0 && in.what != kind::begin_object)
    return fail(errc::bad_value, "the answer is {}, not an object", shown(in));
  if (depth_ == 1 && in.what == kind::key) {
    wanted_ = in.text == "tokens";
    if (wanted_ && seen_)
      return fail(errc::bad_value, "'tokens' stands there twice");
    seen_ = seen_ || wanted_;
    return {};
  }
  if (wanted_ && depth_ == 1 && !ends(in) && in.what != kind::begin_array)
    return fail(errc::bad_value, "tokens is {}, not a list", shown(in));
  if (wanted_ && depth_ == 2 && !ends(in))
    return take_token(in);
  depth_ = depth_ + (begins(in) ? 1U : 0U) - (ends(in) ? 1U : 0U);
  return {};
}

status token_list_reader::take_token(const json::piece &in) {
  if (tokens_.size() == most_)
    return fail(errc::bad_value, "tokens has more than {} entries", most_);
  std::int32_t token = -1;
  const auto *const end = in.text.data() + in.text.size();
  const auto read = std::from_chars(in.text.data(), end, token);
  if (in.what != kind::number || read.ec != std::errc{} || read.ptr != end || token < 0)
    return fail(errc::bad_value, "tokens[{}] is {}, not a token id", tokens_.size(), shown(in));
  tokens_.push_back(token);
  return {};
}

} // namespace millrace
