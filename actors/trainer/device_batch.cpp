// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/device_batch.hpp"

#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "actors/trainer/widen_kernels.hpp"
#include "schema/body.hpp"

namespace millrace {

namespace {

static_assert(wire_values::trainable == static_cast<std::uint8_t>(wire::TokenFlag::Trainable));
static_assert(wire_values::valued == static_cast<std::uint8_t>(wire::TokenFlag::Valued));
static_assert(wire_values::tokens == static_cast<std::uint8_t>(wire::StreamEncoding::Tokens));
static_assert(wire_values::valued_tokens ==
              static_cast<std::uint8_t>(wire::StreamEncoding::Valued));
static_assert(wire_values::on_valued == static_cast<std::uint8_t>(wire::StreamEncoding::OnValued));
static_assert(wire_values::on_trainable ==
              static_cast<std::uint8_t>(wire::StreamEncoding::OnTrainable));
static_assert(wire_values::everywhere ==
              static_cast<std::uint8_t>(wire::StreamEncoding::Everywhere));

/// A stream, and how its column is filled where it has no values.
struct column_plan {
  std::optional<stream_view> stream;
  float pad = 0;
  bool always = false; ///< the column is there without the stream too
};

// In the order of device_batch's columns, which widen_on() names.
enum column : std::size_t {
  advantages,
  inference_logprobs,
  temperatures,
  ref_logprobs,
  rl_weights,
  ce_weights,
  ref_kl_weights,
  columns
};
static_assert(columns == widen_job::most_streams);

std::array<column_plan, columns> plans(const micro_batch &batch) {
  std::array<column_plan, columns> out;
  out[advantages] = {batch.advantages(), 0, true};
  out[inference_logprobs] = {batch.inference_logprobs(), 0, true};
  out[temperatures] = {batch.temperatures(), 1, true};
  out[ref_logprobs] = {batch.ref_logprobs()};
  out[rl_weights] = {batch.rl_weights()};
  out[ce_weights] = {batch.ce_weights()};
  out[ref_kl_weights] = {batch.ref_kl_weights()};
  return out;
}

/// Where each sequence begins among the tokens, and T.
std::vector<std::uint32_t> starts_of(const micro_batch &batch) {
  std::vector<std::uint32_t> starts{0};
  starts.reserve(batch.sequences() + 1);
  for (const auto length : batch.sequence_lengths())
    starts.push_back(starts.back() + length);
  return starts;
}

/// Where the values of each sequence begin in a stream.
std::vector<std::uint32_t> first_values_of(const micro_batch &batch, const stream_view &stream) {
  std::vector<std::uint32_t> firsts;
  firsts.reserve(batch.sequences());
  std::uint32_t at = 0;
  for (std::size_t s = 0; s < batch.sequences(); ++s) {
    firsts.push_back(at);
    switch (static_cast<wire::StreamEncoding>(stream.encodings[s])) {
    case wire::StreamEncoding::Tokens:
      at += batch.sequence_lengths()[s];
      break;
    case wire::StreamEncoding::Valued:
      at += batch.sequence_values()[s];
      break;
    default:
      ++at;
    }
  }
  return firsts;
}

/// Small tables that are not on the wire.
struct job_tables {
  std::vector<std::uint32_t> starts;
  std::array<std::vector<std::uint32_t>, columns> first_values;
};

/// Calls each(values, field of the job that shall point to them) for every array, always in the
/// same order.
template <class Each>
void for_each_array(const micro_batch &batch, const std::array<column_plan, columns> &plan,
                    const job_tables &tables, widen_job &job, Each each) {
  each(batch.input_ids(), job.input_ids);
  each(batch.flags(), job.flags);
  if (const auto types = batch.mm_token_type_ids())
    each(*types, job.types);
  each(std::span<const std::uint32_t>(tables.starts), job.starts);
  for (std::size_t k = 0; k < columns; ++k)
    if (const auto &stream = plan[k].stream) {
      each(stream->encodings, job.streams[k].encodings);
      each(stream->values, job.streams[k].values);
      each(std::span<const std::uint32_t>(tables.first_values[k]), job.streams[k].first_values);
    }
}

device_batch batch_of(const uploaded_batch &sent, device_memory memory) {
  const auto &job = sent.job;
  const auto of = [&](column k) { return job.streams[k].out; };
  return {.step = sent.step,
          .rank = sent.rank,
          .index = sent.index,
          .tokens = job.tokens + job.padding,
          .padding = job.padding,
          .sequences = job.sequences,
          .input_ids = job.input_ids_out,
          .loss_mask = job.loss_mask_out,
          .position_ids = job.position_ids_out,
          .sequence_lengths = job.lengths_out,
          .advantages = of(advantages),
          .inference_logprobs = of(inference_logprobs),
          .temperatures = of(temperatures),
          .ref_logprobs = of(ref_logprobs),
          .rl_weights = of(rl_weights),
          .ce_weights = of(ce_weights),
          .ref_kl_weights = of(ref_kl_weights),
          .mm_token_type_ids = job.types_out,
          .memory = std::move(memory)};
}

/// Where arrays lie in one block of memory.
class layout {
public:
  template <class T> std::size_t add(std::size_t values) {
    return std::exchange(size_, size_ + aligned_for_device(values * sizeof(T)));
  }
  std::size_t size() const noexcept { return size_; }

private:
  std::size_t size_ = 0;
};

} // namespace

result<uploaded_batch> upload_batch(device &to, const micro_batch &batch) {
  const auto plan = plans(batch);
  job_tables tables{starts_of(batch), {}};
  for (std::size_t k = 0; k < columns; ++k)
    if (plan[k].stream)
      tables.first_values[k] = first_values_of(batch, *plan[k].stream);

  uploaded_batch out;
  out.step = batch.step();
  out.rank = batch.rank();
  out.index = batch.index();
  auto &job = out.job;
  std::vector<std::span<const std::byte>> pieces;
  for_each_array(batch, plan, tables, job,
                 [&](auto values, auto *&) { pieces.push_back(std::as_bytes(values)); });
  auto sent = to.upload(pieces);
  if (!sent)
    return with_context(std::move(sent).error(), "uploading a micro batch");
  out.upload = *std::move(sent);
  std::size_t next = 0;
  for_each_array(batch, plan, tables, job, [&](auto values, auto *&field) {
    using value = typename decltype(values)::value_type;
    field = out.upload.memory.template at<const value>(out.upload.offsets[next++]);
  });

  job.tokens = batch.tokens();
  job.padding = batch.padding();
  job.sequences = batch.sequences();
  for (std::size_t k = 0; k < columns; ++k) {
    job.streams[k].pad = plan[k].pad;
    out.has_column[k] = plan[k].always || plan[k].stream;
  }
  return out;
}

result<device_batch> widen_on(device &here, uploaded_batch sent) {
  auto &job = sent.job;
  const auto n = job.tokens + job.padding;
  layout places;
  const auto ids = places.add<std::int64_t>(n);
  const auto mask = places.add<std::uint8_t>(n);
  const auto positions = places.add<std::int64_t>(n);
  const auto lengths = places.add<std::int64_t>(job.sequences);
  const auto types = job.types != nullptr ? places.add<std::int64_t>(n) : 0;
  std::array<std::size_t, columns> streams{};
  for (std::size_t k = 0; k < columns; ++k)
    streams[k] = sent.has_column[k] ? places.add<float>(n) : 0;

  auto memory = here.allocate(places.size());
  if (!memory)
    return with_context(std::move(memory).error(), "widening a micro batch");
  auto counts = here.allocate(job.tokens * sizeof(std::uint32_t));
  if (!counts)
    return with_context(std::move(counts).error(), "widening a micro batch");
  job.valued_before = counts->at<std::uint32_t>(0);
  job.input_ids_out = memory->at<std::int64_t>(ids);
  job.loss_mask_out = memory->at<std::uint8_t>(mask);
  job.position_ids_out = memory->at<std::int64_t>(positions);
  job.lengths_out = memory->at<std::int64_t>(lengths);
  if (job.types != nullptr)
    job.types_out = memory->at<std::int64_t>(types);
  for (std::size_t k = 0; k < columns; ++k)
    if (sent.has_column[k])
      job.streams[k].out = memory->at<float>(streams[k]);

  MILLRACE_TRY(here.wait(device_lane::compute, sent.upload.ready));
  if (auto done = run_widening(here, job); !done)
    return with_context(std::move(done).error(), "widening a micro batch");
  return batch_of(sent, *std::move(memory));
}

} // namespace millrace
