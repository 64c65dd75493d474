// SPDX-License-Identifier: Apache-2.0
#include "actors/packer/micro_batch.hpp"

#include <algorithm>
#include <utility>

#include "schema/kept_tokens.hpp"

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

/// Whether the array with a row for each token and each padding token is within the limit.
bool fits_widened(const array_view &array, std::uint64_t tokens, std::uint64_t limit) {
  std::vector<std::uint64_t> shape(array.shape.begin(), array.shape.end());
  shape.front() = tokens;
  return array_bytes(shape, array.type, limit).has_value();
}

status view_optional(std::string_view field, const wire::Array *array, const message &parts,
                     std::optional<array_view> &out) {
  if (array == nullptr)
    return {};
  auto view = view_array(*array, parts);
  if (!view)
    return with_context(std::move(view).error(), field);
  out = *std::move(view);
  return {};
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
  if (!rewards().empty())
    MILLRACE_TRY(check_length("rewards", rewards().size(), lengths.size(), "sequences"));
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

/// The ids are those that were checked at the door; counts are what a reader finds its way by.
status micro_batch::read_kept_tokens(const micro_batch_limits &accepted) {
  MILLRACE_TRY(view_optional("kept_counts", body_->kept_counts(), parts_, kept_counts_));
  MILLRACE_TRY(view_optional("kept_ids", body_->kept_ids(), parts_, kept_ids_));
  MILLRACE_TRY(check_kept_counts({kept_counts_, kept_ids_}, tokens()));
  if (kept_counts_ &&
      (!fits_widened(*kept_counts_, tokens() + std::uint64_t{padding()}, accepted.tensor_bytes) ||
       !fits_widened(*kept_ids_, kept_ids_->rows(), accepted.tensor_bytes)))
    return fail(errc::too_large, "kept_counts with padding or kept_ids are over {} bytes",
                accepted.tensor_bytes);
  return {};
}

status micro_batch::read_arrays(const micro_batch_limits &accepted) {
  MILLRACE_TRY(view_optional("routed_experts", body_->routed_experts(), parts_, routed_experts_));
  if (const auto &experts = routed_experts_) {
    if (experts->shape.size() != 3)
      return fail(errc::bad_value, "routed_experts has {} dimensions, not 3",
                  experts->shape.size());
    MILLRACE_TRY(check_length("routed_experts", static_cast<std::size_t>(experts->rows()), tokens(),
                              "tokens"));
    if (!fits_widened(*experts, tokens() + std::uint64_t{padding()}, accepted.tensor_bytes))
      return fail(errc::too_large, "routed_experts with padding is over {} bytes",
                  accepted.tensor_bytes);
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
  if (checked)
    checked = out.read_kept_tokens(accepted);
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
  if (batch.kept_counts()) {
    MILLRACE_TRY(check_array(*table.kept_counts(), *batch.kept_counts()));
    MILLRACE_TRY(check_array(*table.kept_ids(), *batch.kept_ids()));
  }
  for (std::size_t i = 0; i < batch.mm_kwargs().size(); ++i)
    MILLRACE_TRY(check_array(*table.mm_kwargs()->Get(static_cast<flatbuffers::uoffset_t>(i)),
                             batch.mm_kwargs()[i]));
  return {};
}

} // namespace millrace
