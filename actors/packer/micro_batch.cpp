// SPDX-License-Identifier: Apache-2.0
#include "actors/packer/micro_batch.hpp"

#include <algorithm>
#include <utility>

namespace millrace {

namespace {

constexpr auto trainable = static_cast<std::uint8_t>(wire::TokenFlag::Trainable);
constexpr auto valued = static_cast<std::uint8_t>(wire::TokenFlag::Valued);
constexpr auto most_encodings = static_cast<std::uint8_t>(wire::StreamEncoding::Everywhere);

std::size_t count_bit(std::span<const std::uint8_t> flags, std::uint8_t bit) noexcept {
  std::size_t count = 0;
  for (auto flag : flags)
    count += (flag & bit) != 0 ? 1U : 0U;
  return count;
}

status check_length(std::string_view field, std::size_t got, std::size_t want,
                    std::string_view unit) {
  if (got != want)
    return fail(errc::bad_value, "{} has {} entries for {} {}", field, got, want, unit);
  return {};
}

/// Bytes of the experts with a row for each token and each padding token.
bool fits_widened(const array_view &experts, std::uint64_t tokens, std::uint64_t limit) {
  std::vector<std::uint64_t> shape(experts.shape.begin(), experts.shape.end());
  shape.front() = tokens;
  return array_bytes(shape, experts.type, limit).has_value();
}

} // namespace

stream_view micro_batch::view(const wire::Stream &stream) noexcept {
  return {span_of(stream.encodings()), span_of(stream.values())};
}

std::optional<stream_view> micro_batch::view(const wire::Stream *stream) noexcept {
  if (stream == nullptr)
    return std::nullopt;
  return view(*stream);
}

std::string_view micro_batch::env_name(std::size_t sequence) const noexcept {
  const auto env = span_of(body_->sequence_envs())[sequence];
  return text_of(body_->env_names()->Get(env));
}

std::optional<std::span<const std::uint8_t>> micro_batch::mm_token_type_ids() const noexcept {
  if (body_->mm_token_type_ids() == nullptr)
    return std::nullopt;
  return span_of(body_->mm_token_type_ids());
}

std::uint64_t micro_batch::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const auto &part : parts_)
    sum += part.size();
  return sum;
}

status micro_batch::check_sequences(const micro_batch_limits &accepted) {
  const auto lengths = sequence_lengths();
  if (lengths.empty())
    return fail(errc::bad_value, "it has no sequences");
  std::uint64_t sum = 0;
  for (auto length : lengths) {
    if (length == 0)
      return fail(errc::bad_value, "sequence_lengths holds 0");
    sum += length;
  }
  if (sum != tokens())
    return fail(errc::bad_value, "sequence_lengths sum to {} for {} tokens", sum, tokens());
  if (tokens() + std::uint64_t{padding()} > accepted.tokens)
    return fail(errc::too_large, "{} tokens and {} of padding, at most {} are accepted", tokens(),
                padding(), accepted.tokens);
  const auto envs = span_of(body_->sequence_envs());
  MILLRACE_TRY(check_length("sequence_envs", envs.size(), lengths.size(), "sequences"));
  const std::size_t names = body_->env_names() == nullptr ? 0 : body_->env_names()->size();
  for (auto env : envs)
    if (env >= names)
      return fail(errc::bad_value, "sequence_envs holds {} for {} names", env, names);
  return check_length("origins", origins().size(), lengths.size(), "sequences");
}

status micro_batch::check_flags() {
  MILLRACE_TRY(check_length("flags", flags().size(), tokens(), "tokens"));
  bool wrong = false;
  bool trains = false;
  for (auto flag : flags()) {
    wrong = wrong | (flag > (trainable | valued)) | (flag == trainable);
    trains = trains | ((flag & trainable) != 0);
  }
  if (wrong)
    return fail(errc::bad_value, "flags holds something other than 0, valued, or valued and "
                                 "trainable");
  if (trains && dummy())
    return fail(errc::bad_value, "it is a dummy with trainable tokens");
  sequence_values_.reserve(sequences());
  std::size_t at = 0;
  for (auto length : sequence_lengths()) {
    sequence_values_.push_back(
        static_cast<std::uint32_t>(count_bit(flags().subspan(at, length), valued)));
    at += length;
  }
  return {};
}

status micro_batch::check_stream(std::string_view name, const wire::Stream *stream) const {
  if (stream == nullptr)
    return {};
  const auto [encodings, values] = view(*stream);
  MILLRACE_TRY(check_length(name, encodings.size(), sequences(), "sequences"));
  std::uint64_t want = 0;
  for (std::size_t s = 0; s < encodings.size(); ++s) {
    if (encodings[s] > most_encodings)
      return fail(errc::bad_value, "{}: unknown encoding {}", name, encodings[s]);
    const auto encoding = static_cast<wire::StreamEncoding>(encodings[s]);
    want += encoding == wire::StreamEncoding::Tokens   ? sequence_lengths()[s]
            : encoding == wire::StreamEncoding::Valued ? sequence_values_[s]
                                                       : 1U;
  }
  if (values.size() != want)
    return fail(errc::bad_value, "{} has {} values, its encodings take {}", name, values.size(),
                want);
  return {};
}

status micro_batch::check_streams() const {
  if (body_->inference_logprobs() == nullptr || body_->temperatures() == nullptr)
    return fail(errc::bad_value, "inference_logprobs or temperatures are absent");
  if (dummy() && (body_->advantages() != nullptr || body_->rl_weights() != nullptr ||
                  body_->ce_weights() != nullptr || body_->ref_kl_weights() != nullptr))
    return fail(errc::bad_value, "it is a dummy with advantages or weight streams");
  MILLRACE_TRY(check_stream("inference_logprobs", body_->inference_logprobs()));
  MILLRACE_TRY(check_stream("temperatures", body_->temperatures()));
  MILLRACE_TRY(check_stream("advantages", body_->advantages()));
  MILLRACE_TRY(check_stream("ref_logprobs", body_->ref_logprobs()));
  MILLRACE_TRY(check_stream("rl_weights", body_->rl_weights()));
  MILLRACE_TRY(check_stream("ce_weights", body_->ce_weights()));
  MILLRACE_TRY(check_stream("ref_kl_weights", body_->ref_kl_weights()));
  if (body_->mm_token_type_ids() != nullptr)
    MILLRACE_TRY(
        check_length("mm_token_type_ids", mm_token_type_ids()->size(), tokens(), "tokens"));
  return {};
}

status micro_batch::read_arrays(const micro_batch_limits &accepted) {
  if (const auto *experts = body_->routed_experts(); experts != nullptr) {
    auto view = view_array(*experts, parts_);
    if (!view)
      return with_context(std::move(view).error(), "routed_experts");
    if (view->shape.size() != 3)
      return fail(errc::bad_value, "routed_experts has {} dimensions, not 3", view->shape.size());
    MILLRACE_TRY(
        check_length("routed_experts", static_cast<std::size_t>(view->rows()), tokens(), "tokens"));
    if (!fits_widened(*view, tokens() + std::uint64_t{padding()}, accepted.tensor_bytes))
      return fail(errc::too_large, "routed_experts with padding is over {} bytes",
                  accepted.tensor_bytes);
    routed_experts_ = *std::move(view);
  }
  if (body_->mm_kwargs() == nullptr)
    return {};
  std::string_view last;
  for (const auto *array : *body_->mm_kwargs()) {
    auto view = view_array(*array, parts_);
    if (!view)
      return with_context(std::move(view).error(), "mm_kwargs");
    if (view->name <= last) // also refuses the empty name
      return fail(errc::bad_value, "mm_kwargs: '{}' comes after '{}'", view->name, last);
    last = view->name;
    mm_kwargs_.push_back(*std::move(view));
  }
  return {};
}

result<micro_batch> micro_batch::parse(message parts, const std::shared_ptr<memory_meter> &meter,
                                       const micro_batch_limits &accepted) {
  if (parts.empty() || parts.size() > limits::parts)
    return fail(errc::bad_format, "a micro batch of {} parts", parts.size());
  auto table = millrace::parse<wire::MicroBatch>(parts.front(), meter);
  if (!table)
    return tl::unexpected(std::move(table).error());
  parts.front() = table->bytes();
  micro_batch out(*std::move(table));
  out.parts_ = std::move(parts);
  auto checked = out.check_sequences(accepted);
  if (checked)
    checked = out.check_flags();
  if (checked)
    checked = out.check_streams();
  if (checked)
    checked = out.read_arrays(accepted);
  if (!checked)
    return with_context(
        std::move(checked).error(),
        fmt::format("step {}, rank {}, micro batch {}", out.step(), out.rank(), out.index()));
  return out;
}

status check_arrays(const micro_batch &batch) {
  // parse() has read these descriptors: they are in the same order.
  const auto &table = *flatbuffers::GetRoot<wire::MicroBatch>(batch.parts().front().data());
  if (batch.routed_experts())
    MILLRACE_TRY(check_array(*table.routed_experts(), *batch.routed_experts()));
  for (std::size_t i = 0; i < batch.mm_kwargs().size(); ++i)
    MILLRACE_TRY(check_array(*table.mm_kwargs()->Get(static_cast<flatbuffers::uoffset_t>(i)),
                             batch.mm_kwargs()[i]));
  return {};
}

} // namespace millrace
