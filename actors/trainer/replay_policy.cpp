// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/replay_policy.hpp"

#include <algorithm>
#include <string>

#include "runtime/file.hpp"
#include "runtime/json.hpp"
#include "runtime/json_out.hpp"

namespace millrace {

namespace {

constexpr std::uint64_t newest_version = 2; // 1 lay in the checkpoint itself
constexpr std::size_t largest_file = 4096;

std::filesystem::path file_in(const std::filesystem::path &folder) {
  return folder / "replay.json";
}

} // namespace

status replay_policy::forward(const policy_batch &in, std::span<float> logprobs,
                              std::span<float> entropy) {
  std::ranges::copy(in.inference_logprobs, logprobs.begin());
  std::ranges::fill(entropy, 0.0F);
  return {};
}

status replay_policy::backward(const policy_batch &, std::span<const float>) {
  return fail(errc::bad_argument, "policy 'replay' has no parameters");
}

status replay_policy::step(const policy_update &in) {
  if (in.step != state_.steps + 1)
    return fail(errc::conflict, "step {} was handed to a policy that has applied {}", in.step,
                state_.steps);
  digest_writer chain;
  chain.add_digest(state_.digest);
  chain.add_u64(in.step);
  chain.add_digest(in.digest);
  state_.digest = chain.finish();
  state_.totals += in.totals;
  state_.steps = in.step;
  return {};
}

status replay_policy::save(const std::filesystem::path &folder, std::uint64_t step) {
  json::tree out;
  out["version"] = newest_version;
  out["steps"] = step;
  out["digest"] = state_.digest.hex();
  out["rl"] = state_.totals.rl;
  out["ce"] = state_.totals.ce;
  out["ref_kl"] = state_.totals.ref_kl;
  return write_file_atomically(file_in(folder), json::dump(out) + '\n');
}

result<std::uint64_t> replay_policy::load(const std::filesystem::path &folder) {
  const auto path = file_in(folder);
  const auto read = [&path]() -> result<state> {
    const auto text = read_file(path, largest_file);
    if (!text)
      return tl::unexpected(text.error());
    json::document document;
    const auto root = document.parse(*text);
    if (!root)
      return tl::unexpected(root.error());
    const auto version = root->get<std::uint64_t>("version");
    if (!version)
      return tl::unexpected(version.error());
    if (*version != newest_version)
      return fail(errc::unsupported, "policy 'replay' of version {}; this program reads {}",
                  *version, newest_version);
    const auto steps = root->get<std::uint64_t>("steps");
    const auto hex = root->get<std::string>("digest");
    const auto rl = root->get<std::int64_t>("rl");
    const auto ce = root->get<std::int64_t>("ce");
    const auto ref_kl = root->get<std::int64_t>("ref_kl");
    for (const auto *number : {&rl, &ce, &ref_kl})
      if (!*number)
        return tl::unexpected(number->error());
    if (!steps)
      return tl::unexpected(steps.error());
    if (!hex)
      return tl::unexpected(hex.error());
    const auto digest = digest128::from_hex(*hex);
    if (!digest)
      return tl::unexpected(digest.error());
    return state{*steps, *digest, {*rl, *ce, *ref_kl}};
  };
  auto found = read();
  if (!found)
    return with_context(std::move(found).error(), path.string());
  state_ = *found;
  return state_.steps;
}

} // namespace millrace
