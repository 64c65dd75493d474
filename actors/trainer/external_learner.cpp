// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/external_learner.hpp"

#include <bit>
#include <cstring>
#include <system_error>
#include <type_traits>
#include <utility>

#include "actors/trainer/dump.hpp"
#include "actors/trainer/tensors.hpp"

namespace millrace {

static_assert(std::endian::native == std::endian::little, "what is saved is little-endian");

namespace {

/// Others have another working directory.
std::string absolute_text(const std::filesystem::path &folder) {
  std::error_code ignored; // then it is as it was
  const auto found = std::filesystem::absolute(folder, ignored);
  return (ignored ? folder : found).lexically_normal().string();
}

} // namespace

status external_learner::begin(std::uint64_t generation) {
  desk_->begin(generation, state_.steps, folder_);
  return {};
}

status external_learner::step(const learner_step &in) {
  if (in.step != state_.steps + 1)
    return fail(errc::conflict, "step {} was handed to a trainer that has applied {}", in.step,
                state_.steps);
  feed_step out{in.step, in.digest, in.totals.rl, in.totals.ce, in.totals.ref_kl, {}};
  out.micro_batches.reserve(in.micro_batches.size());
  for (const auto &batch : in.micro_batches)
    out.micro_batches.push_back(batch.parts());
  if (!dump_.empty()) {
    micro_batch_tensors tensors;
    for (const auto &batch : in.micro_batches) {
      widen(batch, tensors);
      MILLRACE_TRY(dump(dump_, tensors));
    }
  }
  MILLRACE_TRY(desk_->train(std::move(out)));
  state_.steps = in.step;
  return {};
}

result<std::vector<std::byte>> external_learner::save(const std::filesystem::path &folder) {
  static_assert(std::is_trivially_copyable_v<state>);
  if (auto saved = desk_->save(absolute_text(folder)); !saved)
    return tl::unexpected(std::move(saved).error());
  const auto bytes = std::as_bytes(std::span(&state_, 1));
  return std::vector(bytes.begin(), bytes.end());
}

status external_learner::load(std::span<const std::byte> saved, const std::filesystem::path &folder,
                              std::uint64_t step) {
  state found;
  if (saved.size() != sizeof(found))
    return fail(errc::bad_format, "{} bytes of trainer 'external', {} are wanted", saved.size(),
                sizeof(found));
  std::memcpy(&found, saved.data(), sizeof(found));
  if (found.version != state_.version)
    return fail(errc::unsupported, "trainer 'external' of version {}; this program reads {}",
                found.version, state_.version);
  if (found.steps != step)
    return fail(errc::conflict, "trainer 'external' has applied {} steps; it should be {}",
                found.steps, step);
  state_ = found;
  folder_ = absolute_text(folder);
  static_cast<void>(desk_->wait_for_all()); // what ended it is told by the next call
  return {};
}

void external_learner::reset() {
  state_ = {};
  folder_.clear();
  static_cast<void>(desk_->wait_for_all()); // as above
}

std::unique_ptr<learner> make_external_learner(std::shared_ptr<feed_desk> desk,
                                               std::filesystem::path dump) {
  MILLRACE_ASSERT(desk, "an external learner without a desk");
  return std::make_unique<external_learner>(std::move(desk), std::move(dump));
}

} // namespace millrace
