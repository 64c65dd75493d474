// SPDX-License-Identifier: Apache-2.0
#include "actors/run_config.hpp"

#include "actors/trainer/bigram_policy.hpp"

namespace millrace {

const env_config &run_config::env(std::string_view name) const {
  const auto found = envs.find(name);
  return found == envs.end() ? env_default : found->second;
}

step_keep run_config::keep() const noexcept {
  if (recovery.keep != step_keep::automatic)
    return recovery.keep;
  return trainer.checkpoint_every == 0 ? step_keep::trained : step_keep::durable;
}

namespace {

/// Rules for a source that samples from the trainer while it trains.
void check_live_source(const run_config &config, std::vector<error> &errors) {
  if (!config.source.is_live())
    return;
  const auto refuse = [&](std::string why) {
    errors.push_back({errc::bad_config, "source.env: " + std::move(why)});
  };
  if (config.trainer.policy != bigram_policy::name)
    refuse(
        fmt::format("it samples from policy '{}': set trainer.policy to it", bigram_policy::name));
  if (config.source.version == "fresh")
    refuse("its episodes say with which version they were sampled: set source.version to recorded");
  if (config.deterministic)
    refuse("what it samples depends on when: set deterministic to false");
  if (config.instances.env_readers != 1)
    refuse("one reader has it: set env_reader.instances to 1");
  if (config.env(bigram_env_name).group_size == 0)
    refuse(fmt::format("set env.{}.group_size: episodes of a group", bigram_env_name));
  if (!config.state.empty() && !config.recovery.journal)
    refuse("what it sampled cannot be had twice, and a run in a state folder can go on: set "
           "assembler.journal to true, or no state");
}

} // namespace

std::vector<error> run_config::validate() const {
  std::vector<error> errors;
  auto take = [&errors](const std::vector<error> &part) {
    errors.insert(errors.end(), part.begin(), part.end());
  };
  take(source.validate());
  take(batch.validate());
  take(plan.validate());
  take(link.validate());
  take(trainer.validate(vocab_size));
  const auto take_env = [&](const env_config &env, const std::string &section,
                            const env_config &base) {
    take(env.validate(section, base));
    take(env.filter.validate(section, vocab_size));
  };
  take_env(env_default, "env_default", env_config{});
  for (const auto &[name, env] : envs)
    take_env(env, "env." + name, env_default);
  const auto check_deadline = [&](std::string_view section, const env_config &env) {
    if (deterministic && env.deadline_s > 0)
      errors.push_back(
          {errc::bad_config,
           fmt::format("{}.group_deadline = {} and deterministic = true: what comes before a "
                       "deadline is not the same twice; set one of them to 0 or false",
                       section, env.deadline_s)});
  };
  check_deadline("env_default", env_default);
  for (const auto &[name, env] : envs)
    check_deadline("env." + name, env);
  if (const auto version = parse_source_version(source.version);
      version && planner.max_staleness && version->fresh)
    errors.push_back({errc::bad_config,
                      fmt::format("planner.max_staleness = {}: with source.version = \"fresh\" no "
                                  "episode is ever old; set source.version to recorded or offset N",
                                  *planner.max_staleness)});
  check_live_source(*this, errors);
  if (recovery.journal && state.empty())
    errors.push_back({errc::bad_config, "assembler.journal: a journal is kept in the state folder: "
                                        "name one with state"});
  constexpr std::uint64_t least_memory = std::uint64_t{1} << 20;
  if (memory_limit != 0 && memory_limit < least_memory)
    errors.push_back({errc::bad_config,
                      fmt::format("memory.limit: {} bytes; 0 (a quarter of the machine's memory) "
                                  "or at least 1MiB is wanted",
                                  memory_limit)});
  return errors;
}

} // namespace millrace
