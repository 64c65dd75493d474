// SPDX-License-Identifier: Apache-2.0
#include "config/keys.hpp"

#include <array>
#include <cstdint>

#include "schema/limits.hpp"

// Reads a member of the struct that a table of keys is for.
#define MILLRACE_MEMBER(member)                                                                    \
  [](auto &c) -> auto & { return c.member; }

namespace millrace {
namespace {

constexpr std::int64_t most_actors = 1024;
constexpr std::int64_t most_int32 = 2'147'483'647;
constexpr std::int64_t most_tokens{limits::micro_batch_tokens};
constexpr std::int64_t kibibyte = 1024;
constexpr std::int64_t tebibyte = std::int64_t{1} << 40;
constexpr std::size_t longest_path = 4095;
constexpr std::size_t longest_endpoint = 300;

constexpr std::array<std::string_view, 2> last_batches{"ship", "hold"};
constexpr std::array<std::string_view, 2> trainer_kinds{"policy", "external"};
constexpr std::array<std::string_view, 3> keeps{"auto", "durable", "trained"};
constexpr std::array<std::string_view, 4> action_losses{"auto", "rl", "ce", "ref_kl"};
constexpr std::array<std::string_view, 3> samplers{"any", "live", "frozen"};
constexpr std::array<std::string_view, 2> live_envs{"none", "bigram"};
constexpr std::array<std::string_view, 2> rl_kinds{"default", "ipo"};
constexpr std::array<std::string_view, 2> aggregations{"mean", "prompt"};
constexpr std::array<std::string_view, 2> scorings{"survivors", "unit"};
constexpr std::array<std::string_view, 3> filter_actions{"off", "count", "drop"};

constexpr integer_type count_up_to(std::int64_t most) { return {1, most}; }

template <class Access>
constexpr auto run_key(std::string_view name, Access access, key_type type, std::string_view unit,
                       std::string_view meaning) {
  return make_key<run_config>(name, access, type, unit, meaning);
}

template <class Access>
constexpr auto env_key(std::string_view name, Access access, key_type type, std::string_view unit,
                       std::string_view meaning) {
  return make_key<env_config>(name, access, type, unit, meaning);
}

constexpr std::array run_table{
    run_key("run.id", MILLRACE_MEMBER(id), text_type{1, 128}, "",
            "Name of the run, printed and written into what it leaves. Default: the name of the "
            "config file without its ending."),
    run_key(
        "state", MILLRACE_MEMBER(state), text_type{0, longest_path}, "path",
        "Folder for what the run keeps: the planner's log, checkpoints, the recording of a preset, "
        "the quarantine file. It is created if it is not there; a run that is in it goes on. "
        "Empty: a temporary folder, removed at the end unless something was refused."),
    run_key("source.path", MILLRACE_MEMBER(source.path), text_type{0, longest_path}, "path",
            "Recording (.mrec) to read. Wins over source.preset."),
    run_key("source.preset", MILLRACE_MEMBER(source.preset), text_type{0, 64}, "",
            "Synthetic recording that the run makes for itself, as `millrace synth` does."),
    run_key("source.env", MILLRACE_MEMBER(source.env), choice_type{live_envs, {}}, "",
            "Live environment in the process of the trainer: bigram, which policy bigram samples "
            "from. It has no end; --steps ends the run. Wins over source.path."),
    run_key("source.record", MILLRACE_MEMBER(source.record), text_type{0, longest_path}, "path",
            "Of a live environment: a recording of all its episodes, there when the run is over."),
    run_key("source.seed", MILLRACE_MEMBER(source.seed), integer_type{0, INT64_MAX}, "",
            "Seed of the preset: another one gives other tokens and rewards."),
    run_key("source.scale", MILLRACE_MEMBER(source.scale), number_type{1e-6, 1000}, "",
            "Factor on the preset's number of groups. More: a longer run over more data."),
    run_key("source.version", MILLRACE_MEMBER(source.version), text_type{1, 40}, "",
            "Policy version of the episodes. fresh: that of the step that takes them; recorded: as "
            "recorded; offset N: as recorded, plus N (at least 0)."),
    run_key("source.pace", MILLRACE_MEMBER(source.pace), number_type{0, 1e6}, "groups/s",
            "How fast the recording is read; 0: as fast as the bounds allow. Low: imitates slow "
            "environments."),
    run_key("deterministic", MILLRACE_MEMBER(deterministic), boolean_type{}, "",
            "Same recording and config, byte-identical micro batches, whatever the number of "
            "actors. Costs waiting where groups complete out of order."),
    run_key("env_reader.instances", MILLRACE_MEMBER(instances.env_readers),
            count_up_to(most_actors), "actors", "Readers that share the recording."),
    run_key("assembler.instances", MILLRACE_MEMBER(instances.assemblers), count_up_to(most_actors),
            "actors", "Episode assemblers."),
    run_key("scorer.instances", MILLRACE_MEMBER(instances.scorers), count_up_to(most_actors),
            "actors", "Scorers."),
    run_key("packer.instances", MILLRACE_MEMBER(instances.packers), count_up_to(most_actors),
            "actors", "Packers."),
    run_key("trainer.ranks", MILLRACE_MEMBER(plan.ranks), count_up_to(65'536), "ranks",
            "Data-parallel ranks. Each gets as many micro batches in a step."),
    run_key("trainer.timeout", MILLRACE_MEMBER(trainer.timeout_s), number_type{1, 86'400}, "s",
            "How long ranks wait for each other before they give up. Less: a rank that hangs is "
            "noticed sooner; one that only stalls ends the run."),
    run_key("trainer.kind", MILLRACE_MEMBER(trainer.kind), choice_type{trainer_kinds, {}}, "",
            "Who trains: policy, trainer.policy in the rank's own process; external, processes in "
            "Python that attach to it (docs/python.md)."),
    run_key("trainer.peers", MILLRACE_MEMBER(trainer.peers), count_up_to(most_actors), "processes",
            "With trainer.kind = \"external\": processes that share a rank's data (context, "
            "tensor, pipeline parallel). A step is trained when all of them have said so."),
    run_key("trainer.policy", MILLRACE_MEMBER(trainer.policy), text_type{1, longest_path}, "",
            "What is trained: replay (nothing: the data path alone), bigram (a table of logits, by "
            "SGD), or the path of a shared library with a slash in it (docs/policies.md)."),
    run_key("trainer.policy_options", MILLRACE_MEMBER(trainer.policy_options),
            text_type{0, longest_path}, "", "Text for a policy in a shared library."),
    run_key("trainer.learning_rate", MILLRACE_MEMBER(trainer.learning_rate), number_type{0, 1e6},
            "", "Of policy bigram. Larger: it learns in fewer steps, until it overshoots."),
    run_key("trainer.metrics", MILLRACE_MEMBER(trainer.metrics), text_type{0, longest_path}, "path",
            "File to which rank 0 adds a line of JSON for each step. Empty: metrics.jsonl in the "
            "state folder, if one is named."),
    run_key("loss.type", MILLRACE_MEMBER(trainer.loss.rl), choice_type{rl_kinds, {}}, "",
            "Term of the rl component: which tokens it lets go (docs/losses.md)."),
    run_key("loss.dppo_mask_low", MILLRACE_MEMBER(trainer.loss.dppo_mask_low), number_type{0, 1},
            "probability",
            "default: how far the probability of a token without a positive advantage may have "
            "fallen. Less: fewer tokens train, the policy stays nearer to what sampled."),
    run_key("loss.dppo_mask_high", MILLRACE_MEMBER(trainer.loss.dppo_mask_high), number_type{0, 1},
            "probability",
            "The same for how far that of one with a positive advantage may have "
            "risen."),
    run_key("loss.ipo_threshold", MILLRACE_MEMBER(trainer.loss.ipo_threshold), number_type{0, 1},
            "probability", "ipo: how far a probability may have moved, either way."),
    run_key("loss.adv_tau", MILLRACE_MEMBER(trainer.loss.adv_tau), number_type{0, 1e6}, "",
            "Factor of advantages. Larger: they count more against loss.kl_tau."),
    run_key(
        "loss.kl_tau", MILLRACE_MEMBER(trainer.loss.kl_tau), number_type{0, 1e6}, "",
        "Factor of the squared log ratio, on all tokens of rl. Larger: the policy is held nearer "
        "to what sampled."),
    run_key("trainer.checkpoint_every", MILLRACE_MEMBER(trainer.checkpoint_every),
            integer_type{0, 1'000'000'000}, "steps",
            "Steps between checkpoints; 0: none. More often: a trainer that restarts has less to "
            "do again, and saves more of the time."),
    run_key("steps.keep", MILLRACE_MEMBER(recovery.keep), choice_type{keeps, {}}, "",
            "How long a step can be served again: durable, until a checkpoint holds it; trained, "
            "until it is trained, and then a trainer that restarts loses the steps after its "
            "checkpoint; auto: durable if there are checkpoints."),
    run_key("log.sync", MILLRACE_MEMBER(recovery.sync), boolean_type{}, "",
            "fsync of the planner's log, journals and checkpoints. false: only to measure what it "
            "costs."),
    run_key("assembler.journal", MILLRACE_MEMBER(recovery.journal), boolean_type{}, "",
            "Assemblers write what they get to a journal in the state folder, for sources that "
            "cannot be read again."),
    run_key("recovery.wait", MILLRACE_MEMBER(recovery.wait_s), number_type{0, 86'400}, "s",
            "How long a run waits for a lost planner, env reader or trainer to be started again "
            "before it ends everywhere."),
    run_key("runtime.workers", MILLRACE_MEMBER(workers), integer_type{0, most_actors}, "threads",
            "Threads that run actors; 0: as many as there are cores."),
    run_key("memory.limit", MILLRACE_MEMBER(memory_limit),
            integer_type{0, std::int64_t{1} << 60, true}, "bytes",
            "Bytes of episodes that a process holds before those that feed it pause; 0: a quarter "
            "of the machine's memory. Too little for one step stalls readers; more lets them run "
            "further ahead."),
    run_key("batch.traces", MILLRACE_MEMBER(batch.traces), integer_type{0, 1'000'000'000}, "traces",
            "Traces with a kept sample in one step; 0: batch.tokens counts. Exactly one of the "
            "two is set."),
    run_key("batch.tokens", MILLRACE_MEMBER(batch.tokens), integer_type{0, 1'000'000'000'000},
            "tokens", "Kept tokens in one step; 0: batch.traces counts."),
    run_key("batch.last", MILLRACE_MEMBER(batch.last), choice_type{last_batches, {}}, "",
            "A last batch that the end of data leaves short: ship makes it a step, hold trains "
            "nobody on it."),
    run_key("seq_len", MILLRACE_MEMBER(plan.seq_len), count_up_to(most_tokens), "tokens",
            "Most that one micro batch holds, padding included; longer samples are cut. More: "
            "fewer cuts, more device memory."),
    run_key("pad_to_multiple_of", MILLRACE_MEMBER(plan.pad_to_multiple_of),
            count_up_to(most_tokens), "tokens",
            "Micro batches are padded to a multiple of it; seq_len must be one. More suits "
            "kernels that want round shapes and wastes the rest."),
    run_key("vocab_size", MILLRACE_MEMBER(vocab_size), count_up_to(most_int32), "ids",
            "Token ids lie below it; an episode with another one is rejected. Set it to the "
            "model's."),
    run_key("cost.linear", MILLRACE_MEMBER(plan.cost.linear), integer_type{0, INT64_MAX}, "",
            "Cost of a token, for balancing ranks. Not both costs are 0; only ratios matter."),
    run_key("cost.quadratic", MILLRACE_MEMBER(plan.cost.quadratic), integer_type{0, INT64_MAX}, "",
            "Cost of the square of a sequence's length (attention)."),
    run_key("cost.model", MILLRACE_MEMBER(plan.cost_model), text_type{0, longest_path}, "path",
            "A model's config.json (Hugging Face) from which both are made, in FLOPs; then neither "
            "is set to anything else."),
    run_key("planner.lookahead", MILLRACE_MEMBER(planner.lookahead), count_up_to(64), "steps",
            "Steps packed beyond the one in training. More: trainers wait less, hosts hold more."),
    run_key("planner.max_backlog_steps", MILLRACE_MEMBER(planner.max_backlog_steps),
            count_up_to(most_actors), "steps",
            "Steps' worth of complete groups above which no new group is begun. More: bursts are "
            "absorbed, episodes wait longer."),
    run_key("planner.max_open_groups", MILLRACE_MEMBER(planner.max_open_groups),
            count_up_to(1'000'000), "groups",
            "Groups that may be begun and not complete. More: needed where the episodes of a group "
            "are far apart in the source; each holds its bytes."),
    run_key("planner.max_staleness", MILLRACE_MEMBER(planner.max_staleness),
            integer_type{0, INT64_MAX, false, true}, "versions",
            "Episodes whose first version is more than so much older than the policy when their "
            "step is "
            "cut are not trained. Less: fresher data, more is thrown away; off: no limit."),
    run_key("planner.max_empty_batches", MILLRACE_MEMBER(planner.max_empty_batches),
            integer_type{0, 1'000'000}, "batches",
            "End the run, as failed, after so many batches' worth of data without a sample to "
            "train; 0: never. Few: a short streak of bad groups ends it."),
    run_key("progress.limit", MILLRACE_MEMBER(progress.limit_s), number_type{0, 604'800}, "s",
            "Time without a trained step after which the chain of waits is printed; 0: never. "
            "Longer than a slow step takes."),
    run_key("progress.stop", MILLRACE_MEMBER(progress.stop), boolean_type{}, "",
            "Then also end the run, as failed."),
    run_key("directory.endpoint", MILLRACE_MEMBER(link.directory), text_type{1, longest_endpoint},
            "", "Where the directory binds, and where all other processes look for it."),
    run_key("link.bind", MILLRACE_MEMBER(link.bind), text_type{1, longest_endpoint}, "",
            "What a process binds, tcp://ADDRESS:PORT or ipc://PATH; * as the port: a free one. "
            "Several hosts: tcp://0.0.0.0:*, with keys."),
    run_key("link.advertise", MILLRACE_MEMBER(link.advertise), text_type{0, longest_endpoint}, "",
            "Host that others reach this process by. Empty: the bound one, or an address of the "
            "machine if that is a wildcard."),
    run_key("link.timeout", MILLRACE_MEMBER(link.timeout_s), number_type{0.1, 3600}, "s",
            "A process that is silent for so long is late. Less: losses are noticed sooner, and a "
            "busy host may be taken for a dead one."),
    run_key("link.min_rate", MILLRACE_MEMBER(link.min_rate), integer_type{kibibyte, tebibyte, true},
            "bytes/s",
            "A message may take its size over this, plus link.timeout, before it is sent anew."),
    run_key("insecure", MILLRACE_MEMBER(link.insecure), boolean_type{}, "",
            "Bind other addresses than loopback without keys: whoever reaches them is let in."),
    run_key("curve.folder", MILLRACE_MEMBER(link.curve_folder), text_type{0, longest_path}, "path",
            "Keys of this process and the list of those that it lets in, made by `millrace "
            "keygen`. Empty: no CURVE."),
    run_key("curve.directory_key", MILLRACE_MEMBER(link.directory_key), text_type{0, 40}, "",
            "The directory's public key. Empty: the one in curve.folder, which is right where all "
            "processes share a pair."),
};

constexpr std::array env_table{
    env_key("group_size", MILLRACE_MEMBER(group_size), integer_type{0, 65'535}, "episodes",
            "Episodes of a group; 0: the recording says it. Where both say it they must agree."),
    env_key("group_scoring", MILLRACE_MEMBER(scoring), choice_type{scorings, {}}, "",
            "survivors: episodes of a group count though others failed; unit: one that failed "
            "drops the whole group."),
    env_key("group_deadline", MILLRACE_MEMBER(deadline_s), number_type{0, 604'800}, "s",
            "A group that is not complete so long after its first frame ends without being "
            "trained; 0: none. Too little: slow episodes take their group with them."),
    env_key("algorithm", MILLRACE_MEMBER(algorithm), text_type{1, 64}, "",
            "How groups are scored: grpo, hierarchical_grpo, max_rl, rae, echo, sft, opd, opsd, or "
            "none (advantages that came with the episodes). docs/algorithms.md explains each."),
    env_key("action_loss_type", MILLRACE_MEMBER(action_loss_type), choice_type{action_losses, {}},
            "",
            "Loss component that trains the model's tokens; auto: the algorithm's own: ce for sft, "
            "ref_kl for opd and opsd, rl for all others."),
    env_key("sampler", MILLRACE_MEMBER(sampler), choice_type{samplers, {}}, "",
            "Who sampled the episodes: the live policy, a frozen model, or any of both. An episode "
            "that says otherwise is rejected. sft wants frozen."),
    env_key("gate.reject_min", MILLRACE_MEMBER(gate.reject_min), number_type{-1e9, 1e9, true},
            "advantage",
            "A group is rejected if all its advantages lie in [reject_min, reject_max]. Both are "
            "set or none."),
    env_key("gate.reject_max", MILLRACE_MEMBER(gate.reject_max), number_type{-1e9, 1e9, true},
            "advantage", "See gate.reject_min. [0, 0] rejects groups that teach nothing."),
    env_key("length_penalty.num_output_tokens_weight",
            MILLRACE_MEMBER(penalty.num_output_tokens_weight), number_type{0, 1e6}, "",
            "Share of the mean reward that the longest trace loses for its sampled tokens."),
    env_key("length_penalty.num_input_tokens_weight",
            MILLRACE_MEMBER(penalty.num_input_tokens_weight), number_type{0, 1e6}, "",
            "The same for all other tokens."),
    env_key("length_penalty.num_turns_weight", MILLRACE_MEMBER(penalty.num_turns_weight),
            number_type{0, 1e6}, "", "The same for turns."),
    env_key("length_weighted_baseline", MILLRACE_MEMBER(length_weighted_baseline), boolean_type{},
            "", "The baseline weighs each trace by its trainable tokens."),
    env_key("loss_aggregation", MILLRACE_MEMBER(aggregation), choice_type{aggregations, {}}, "",
            "prompt: each group counts alike; mean: each token does."),
    env_key("episode_agents", MILLRACE_MEMBER(episode_agents), text_list_type{limits::name_bytes},
            "",
            "hierarchical_grpo: agents whose traces are compared within their episode; those of "
            "others are compared over the group."),
    env_key("decay", MILLRACE_MEMBER(decay), number_type{0, 0.999999}, "",
            "rae: share of an agent's baseline that a new reward leaves. Larger: steadier, and "
            "slower to follow the policy."),
    env_key("echo.roles", MILLRACE_MEMBER(echo.roles),
            number_table_type{0, 1e6, limits::name_bytes}, "",
            "echo: weight in the ce loss of the tokens of each role, `echo.roles.tool = 0.1`. "
            "Larger: the model learns more of what the environment says."),
    env_key("teacher.endpoint", MILLRACE_MEMBER(teacher.endpoint), text_type{0, longest_endpoint},
            "",
            "opd: model server of the teacher, opsd: of the live policy: "
            "`http://10.0.0.7:8000`."),
    env_key("teacher.model", MILLRACE_MEMBER(teacher.model), text_type{0, limits::name_bytes}, "",
            "Name of the model on that server; empty: whichever it has."),
    env_key("reference.concurrency", MILLRACE_MEMBER(reference.concurrency),
            count_up_to(most_actors), "requests",
            "opd, opsd: requests to that server in flight from each scorer. More: it is used "
            "better until its batch is full, then requests time out in its queue."),
    env_key("reference.timeout", MILLRACE_MEMBER(reference.timeout_s), number_type{0.01, 86'400},
            "s",
            "For one try of one request. Too short: long prompts are never answered; too long: a "
            "server that hangs is noticed late."),
    env_key("reference.retries", MILLRACE_MEMBER(reference.retries), integer_type{0, 1000}, "",
            "Tries after the first of a request without an answer, 0.2 s apart and then up to "
            "10 s. Fewer: a server that restarts ends the run; more: one that is gone is given up "
            "late."),
    env_key("temperature", MILLRACE_MEMBER(temperature), number_type{1e-6, 1e4}, "",
            "Sampling temperature of the policy, on every token."),
    env_key("filter.gibberish.action", MILLRACE_MEMBER(filter.gibberish.action),
            choice_type{filter_actions, {}}, "",
            "Looks for a rare token that was very unlikely: count reports such traces, drop also "
            "trains nobody on them. Wants vocab_size."),
    env_key("filter.gibberish.token_id_threshold",
            MILLRACE_MEMBER(filter.gibberish.token_id_threshold), integer_type{0, most_int32}, "",
            "Token ids above it are rare. Below vocab_size."),
    env_key("filter.gibberish.logprob_offset", MILLRACE_MEMBER(filter.gibberish.logprob_offset),
            number_type{-100, 100}, "nats",
            "Its logprob is below -log(vocab_size) minus this. More: fewer finds."),
    env_key("filter.repetition.action", MILLRACE_MEMBER(filter.repetition.action),
            choice_type{filter_actions, {}}, "",
            "Looks for a long run of tokens that were nearly certain; actions as above."),
    env_key("filter.repetition.window", MILLRACE_MEMBER(filter.repetition.window),
            count_up_to(most_int32), "tokens", "Length of the run. Less: more finds."),
    env_key("filter.repetition.prob_threshold", MILLRACE_MEMBER(filter.repetition.prob_threshold),
            number_type{0, 1}, "probability",
            "Each token of the run is more probable than this. Less: more finds."),
};

} // namespace

std::span<const key<run_config>> run_keys() { return run_table; }

std::span<const key<env_config>> env_keys() { return env_table; }

} // namespace millrace
