// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/replay_policy.hpp"

#include <bit>
#include <cstring>
#include <type_traits>

namespace millrace {

static_assert(std::endian::native == std::endian::little, "what is saved is little-endian");

status replay_policy::step(const learner_step &in) {
  if (in.step != state_.steps + 1)
    return fail(errc::conflict, "step {} was handed to a policy that has applied {}", in.step,
                state_.steps);
  digest_writer chain;
  chain.add_digest(state_.digest);
  chain.add_u64(in.step);
  chain.add_digest(in.digest);
  state_.digest = chain.finish();
  state_.totals.rl += in.totals.rl;
  state_.totals.ce += in.totals.ce;
  state_.totals.ref_kl += in.totals.ref_kl;
  state_.steps = in.step;
  return {};
}

result<std::vector<std::byte>> replay_policy::save(const std::filesystem::path &) {
  static_assert(std::is_trivially_copyable_v<state>);
  const auto bytes = std::as_bytes(std::span(&state_, 1));
  return std::vector(bytes.begin(), bytes.end());
}

status replay_policy::load(std::span<const std::byte> saved, const std::filesystem::path &,
                           std::uint64_t step) {
  state found;
  if (saved.size() != sizeof(found))
    return fail(errc::bad_format, "{} bytes of policy 'replay', {} are wanted", saved.size(),
                sizeof(found));
  std::memcpy(&found, saved.data(), sizeof(found));
  if (found.version != state_.version)
    return fail(errc::unsupported, "policy 'replay' of version {}; this program reads {}",
                found.version, state_.version);
  if (found.steps != step)
    return fail(errc::conflict, "policy 'replay' has applied {} steps; it should be {}",
                found.steps, step);
  state_ = found;
  return {};
}

} // namespace millrace
