// SPDX-License-Identifier: Apache-2.0
#include "config/run_config.hpp"

#include <algorithm>

#include <boost/test/unit_test.hpp>

#include "runtime/file.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace millrace;

namespace {

const std::string base = "source.preset = \"quickstart\"\nbatch.traces = 8\n";

auto load(const std::string &text, std::vector<std::string> sets = {}) {
  return load_config_text(text, "dir/run.toml", sets);
}

/// The messages of a config that must not load, one per line.
std::string refusal(const std::string &text, std::vector<std::string> sets = {}) {
  const auto loaded = load(text, std::move(sets));
  if (loaded)
    return "(it loads)";
  std::string out;
  for (const error &each : loaded.error())
    out += each.message + "\n";
  return out;
}

} // namespace

BOOST_AUTO_TEST_SUITE(run_configs)

BOOST_AUTO_TEST_CASE(defaults_hold_where_nothing_is_set) {
  const run_config config = load(base).value();
  BOOST_TEST(config.id == "run");
  BOOST_TEST(config.state.empty());
  BOOST_TEST(config.source.path.empty());
  BOOST_TEST(config.source.seed == 1U);
  BOOST_TEST(config.source.scale == 1.0);
  BOOST_TEST((config.source.version == "fresh"));
  BOOST_TEST(config.source.pace == 0.0);
  BOOST_TEST(!config.deterministic);
  BOOST_TEST(config.instances.env_readers == 1U);
  BOOST_TEST(config.instances.assemblers == 1U);
  BOOST_TEST(config.instances.scorers == 1U);
  BOOST_TEST(config.instances.packers == 1U);
  BOOST_TEST(config.workers == 0U);
  BOOST_TEST(config.batch.tokens == 0U);
  BOOST_TEST((config.batch.last == last_batch::ship));
  BOOST_TEST(config.memory_limit == 0U);
  BOOST_TEST(config.vocab_size == 2'147'483'647U);
  BOOST_TEST(config.envs.empty());
  BOOST_TEST(config.env_default.algorithm == "grpo");
}

BOOST_AUTO_TEST_CASE(an_unknown_key_names_its_line_and_the_nearest_known_key) {
  BOOST_TEST(refusal(base + "scorer.instnces = 2\n") ==
             "unknown key 'scorer.instnces' in dir/run.toml:3; did you mean "
             "'scorer.instances'?\n");
  BOOST_TEST(refusal(base, {"scorrer.instances=2"}) ==
             "unknown key 'scorrer.instances' in --set; did you mean 'scorer.instances'?\n");
  BOOST_TEST(refusal(base + "[env.math]\ngroupsize = 2\n") ==
             "unknown key 'env.math.groupsize' in dir/run.toml:4; did you mean "
             "'env.math.group_size'?\n");
}

BOOST_AUTO_TEST_CASE(an_unknown_key_like_no_other_points_to_the_list) {
  BOOST_TEST(refusal(base + "[zzzzzzzzzzzzzzzz]\nq = 1\n") ==
             "unknown key 'zzzzzzzzzzzzzzzz.q' in dir/run.toml:4; docs/config.md lists all keys\n");
}

BOOST_AUTO_TEST_CASE(an_unknown_empty_table_is_an_unknown_key) {
  BOOST_TEST(refusal(base + "[scorers]\n").starts_with("unknown key 'scorers' in dir/run.toml:3"));
}

BOOST_AUTO_TEST_CASE(a_wrong_type_shows_the_value_and_what_is_wanted) {
  BOOST_TEST(refusal(base + "scorer.instances = \"two\"\n") ==
             "scorer.instances in dir/run.toml:3: 'two' is a string, an integer is wanted\n");
  BOOST_TEST(refusal(base + "scorer = 3\n") ==
             "scorer in dir/run.toml:3: 3 is an integer, a table is wanted\n");
  BOOST_TEST(refusal(base + "seq_len = [1]\n") ==
             "seq_len in dir/run.toml:3: the value is an array, an integer is wanted\n");
}

BOOST_AUTO_TEST_CASE(a_value_out_of_range_shows_the_range) {
  BOOST_TEST(refusal(base, {"scorer.instances=0"}) ==
             "scorer.instances in --set: 0 is out of range, 1 to 1024 is wanted\n");
}

BOOST_AUTO_TEST_CASE(versions_are_fresh_recorded_or_recorded_with_an_offset) {
  for (const char *good : {"fresh", "recorded", "offset 2", "offset -40"})
    BOOST_TEST(refusal(base, {fmt::format("source.version={}", good)}) == "(it loads)");
  for (const char *bad : {"old", "offset", "offset x", "offset 1.5", "offset 2 ", "Fresh"})
    BOOST_TEST(refusal(base, {fmt::format("source.version={}", bad)}).find(bad) !=
               std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_limit_that_is_off_is_none_and_zero_is_one) {
  BOOST_TEST(!load(base, {"planner.max_staleness=off"}).value().planner.max_staleness);
  const std::vector<std::string> none{"planner.max_staleness=0", "source.version=recorded"};
  BOOST_TEST(load(base, none).value().planner.max_staleness.value() == 0U);
}

BOOST_AUTO_TEST_CASE(a_limit_that_no_episode_can_exceed_is_refused) {
  BOOST_TEST(refusal(base, {"planner.max_staleness=2"}).find("set source.version to recorded") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_group_deadline_in_a_deterministic_run_is_refused_by_name) {
  const auto all = refusal(base + "deterministic = true\n[env.a]\ngroup_deadline = 5\n");
  BOOST_TEST(all.find("env.a.group_deadline = 5") != std::string::npos, all);
  BOOST_TEST(std::count(all.begin(), all.end(), '\n') == 1);
}

BOOST_AUTO_TEST_CASE(all_errors_are_listed_at_once) {
  const std::string all = refusal("scorer.instances = 0\nseq_len = \"x\"\n[bogus_bogus]\nkey = 1\n",
                                  {"nonsense", "packer.instances=-1"});
  BOOST_TEST(std::count(all.begin(), all.end(), '\n') == 7, all);
  for (const char *part : {"scorer.instances in dir/run.toml:1", "seq_len in dir/run.toml:2",
                           "unknown key 'bogus_bogus.key' in dir/run.toml:4", "--set 'nonsense'",
                           "packer.instances in --set", "source.path or source.preset",
                           "batch.traces or batch.tokens"})
    BOOST_TEST(all.find(part) != std::string::npos, part << " is not in\n" << all);
}

BOOST_AUTO_TEST_CASE(rules_do_not_speak_of_keys_that_were_refused) {
  BOOST_TEST(refusal("source.preset = \"quickstart\"\nbatch.traces = \"x\"\n") ==
             "batch.traces in dir/run.toml:2: 'x' is a string, an integer is wanted\n");
}

BOOST_AUTO_TEST_CASE(a_file_that_is_not_toml_is_one_error_beside_those_of_the_command_line) {
  const std::string all = refusal("batch.traces = 8\nseq_len = = 3\n", {"packer.instances=0"});
  BOOST_TEST(all.starts_with("dir/run.toml:2: "), all);
  BOOST_TEST(all.find("\npacker.instances in --set: ") != std::string::npos, all);
  BOOST_TEST(std::count(all.begin(), all.end(), '\n') == 2, all);
}

BOOST_AUTO_TEST_CASE(a_set_wins_over_the_file_and_over_earlier_ones) {
  BOOST_TEST(load(base + "seq_len = 64\n", {"seq_len=128"}).value().plan.seq_len == 128U);
  BOOST_TEST(load(base, {"seq_len=128", "seq_len=256"}).value().plan.seq_len == 256U);
}

BOOST_AUTO_TEST_CASE(sizes_take_units) {
  BOOST_TEST(load(base, {"memory.limit=3GiB"}).value().memory_limit == std::uint64_t{3} << 30);
  BOOST_TEST(load(base, {"memory.limit=512 MiB"}).value().memory_limit == std::uint64_t{512} << 20);
  BOOST_TEST(load(base, {"memory.limit=5000000"}).value().memory_limit == 5'000'000U);
  for (const char *wrong : {"4GB", "GiB", "-1GiB", "9999999999TiB", "4GiBs", "1e9"})
    BOOST_TEST(!load(base, {std::string("memory.limit=") + wrong}), wrong);
}

BOOST_AUTO_TEST_CASE(text_keys_take_bare_words_from_the_command_line) {
  BOOST_TEST(load(base, {"run.id=7"}).value().id == "7");
  BOOST_TEST(load(base, {"source.path=a/b.mrec"}).value().source.path == "a/b.mrec");
  BOOST_TEST(refusal(base + "run.id = 7\n") ==
             "run.id in dir/run.toml:3: 7 is an integer, a string is wanted\n");
}

BOOST_AUTO_TEST_CASE(environments_start_from_the_default_wherever_it_stands) {
  const run_config config = load(base + "[env.math]\ngroup_size = 8\n[env_default]\n"
                                        "group_size = 4\ntemperature = 0.5\n",
                                 {"env_default.temperature=0.25"})
                                .value();
  BOOST_TEST(config.env("math").group_size == 8U);
  BOOST_TEST(config.env("math").temperature == 0.25);
  BOOST_TEST(config.env("other").group_size == 4U);
}

BOOST_AUTO_TEST_CASE(an_environment_can_turn_off_a_gate_that_the_default_has) {
  const run_config config = load(base + "[env_default]\ngate = {reject_min = 0, reject_max = 0}\n"
                                        "[env.math]\ngate = {reject_min = \"off\", "
                                        "reject_max = \"off\"}\n")
                                .value();
  BOOST_TEST(config.env("code").gate.reject_min.value() == 0.0);
  BOOST_TEST(!config.env("math").gate.reject_min.has_value());
}

BOOST_AUTO_TEST_CASE(roles_of_echo_are_set_one_by_one) {
  const run_config config =
      load(base + "[env_default]\nalgorithm = \"echo\"\necho.roles.user = 0.5\n"
                  "[env.shell]\necho.roles = { tool = 0.1, system = 1 }\n",
           {"env.shell.echo.roles.tool=0.25"})
          .value();
  const std::map<std::string, double> want{{"system", 1}, {"tool", 0.25}, {"user", 0.5}};
  BOOST_TEST((config.env("shell").echo.roles == want));
  BOOST_TEST(config.env_default.echo.roles.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_list_replaces_the_one_that_the_default_has) {
  const run_config config =
      load(base + "[env_default]\nalgorithm = \"hierarchical_grpo\"\nepisode_agents = [\"a\"]\n"
                  "[env.game]\nepisode_agents = [\"b\", \"c\"]\n")
          .value();
  BOOST_TEST((config.env("game").episode_agents == std::vector<std::string>{"b", "c"}));
}

BOOST_AUTO_TEST_CASE(every_environment_is_checked_whole_and_all_errors_come_at_once) {
  BOOST_TEST(
      refusal(base + "[env.a]\nalgorithm = \"rae\"\necho.roles.tool = 0.1\n"
                     "[env.b]\nalgorithm = \"opd\"\naction_loss_type = \"rl\"\n"
                     "[env.c]\ngroup_size = 1\n") ==
      "dir/run.toml: env.a.echo.roles is an option of echo, and env.a.algorithm is rae: "
      "leave one of them out\n"
      "dir/run.toml: env.b.action_loss_type = \"rl\" contradicts algorithm opd, which trains "
      "with ref_kl: leave it out\n"
      "dir/run.toml: env.b.teacher.endpoint is not set: opd needs a model server that scores "
      "its tokens\n"
      "dir/run.toml: env.c.group_size = 1: grpo compares the episodes of a group, and one "
      "alone has nothing to be compared with: set 2 or more\n");
}

BOOST_AUTO_TEST_CASE(an_environment_may_have_another_algorithm_than_the_default_has_options_for) {
  BOOST_TEST(load(base + "[env_default]\nalgorithm = \"rae\"\ndecay = 0.5\n"
                         "[env.a]\nalgorithm = \"grpo\"\n")
                 .has_value());
}

BOOST_AUTO_TEST_CASE(no_environment_is_called_all) {
  BOOST_TEST(refusal(base + "[env.all]\ngroup_size = 2\n") ==
             "env.all.group_size in dir/run.toml:4: 'all' cannot name an environment\n");
  BOOST_TEST(refusal(base + "env = 3\n") ==
             "env in dir/run.toml:3: 3 is an integer, a table for each environment is wanted\n");
}

BOOST_AUTO_TEST_CASE(an_environment_with_an_empty_table_has_the_defaults) {
  BOOST_TEST(load(base + "[env.math]\n").value().envs.contains("math"));
}

BOOST_AUTO_TEST_CASE(broken_rules_of_the_default_environment_name_its_keys) {
  const std::string all = refusal(base + "[env_default]\ngate.reject_min = 1\n");
  BOOST_TEST(all.find("env_default.gate.reject_max") != std::string::npos, all);
  BOOST_TEST(all.find("env.env_default") == std::string::npos, all);
}

BOOST_AUTO_TEST_CASE(an_unknown_preset_is_refused_unless_a_path_wins_over_it) {
  BOOST_TEST(refusal(base, {"source.preset=quikstart"}) ==
             "dir/run.toml: source.preset: unknown preset 'quikstart'; known: quickstart, "
             "five-algorithms\n");
  BOOST_TEST(load(base, {"source.preset=quikstart", "source.path=a.mrec"}).has_value());
}

BOOST_AUTO_TEST_CASE(exactly_one_measure_of_a_batch_is_set) {
  const std::string source = "source.preset = \"quickstart\"\n";
  BOOST_TEST(refusal(source).find("batch.traces or batch.tokens must be set") != std::string::npos);
  BOOST_TEST(refusal(base, {"batch.tokens=9"}).find("only one counts") != std::string::npos);
  BOOST_TEST(load(base, {"batch.tokens=9", "batch.traces=0"}).value().batch.tokens == 9U);
}

BOOST_AUTO_TEST_CASE(a_missing_file_a_directory_and_a_device_are_refused) {
  const auto why = [](const char *path) { return load_config(path, {}).error().at(0).message; };
  BOOST_TEST(why("/nonexistent/x.toml") ==
             "cannot read '/nonexistent/x.toml': No such file or directory");
  BOOST_TEST(why("/") == "cannot read '/': it is a directory");
  BOOST_TEST(why("/dev/zero") == "cannot read '/dev/zero': it is not a regular file");
}

BOOST_AUTO_TEST_CASE(the_quickstart_config_loads) {
  const auto loaded = load_config(MILLRACE_SOURCE_DIR "/config/quickstart.toml", {});
  BOOST_TEST_REQUIRE(loaded.has_value(), loaded.error().at(0).message);
  BOOST_TEST(loaded->id == "quickstart");
  BOOST_TEST(loaded->deterministic);
  BOOST_TEST(loaded->source.preset == "quickstart");
  BOOST_TEST(loaded->plan.ranks == 2U);
}

BOOST_AUTO_TEST_CASE(a_limit_that_no_process_could_work_in_is_refused) {
  BOOST_TEST(load(base, {"memory.limit=1MiB"}).has_value());
  BOOST_TEST(refusal(base, {"memory.limit=1048575"}).find("at least 1MiB") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(endpoints_hosts_and_keys_are_checked_and_named) {
  const std::string key(40, 'k');
  for (const auto &[set, part] : std::vector<std::pair<std::string, std::string>>{
           {"directory.endpoint=node:7", "dir/run.toml: directory.endpoint: 'node:7'"},
           {"link.bind=tcp://1.2.3.4",
            "dir/run.toml: link.bind: endpoint 'tcp://1.2.3.4' has no port"},
           {"link.advertise=node:7", "dir/run.toml: link.advertise: 'node:7'"},
           {"curve.directory_key=" + key, "curve.folder must be set"},
           {"curve.directory_key=short", "dir/run.toml: curve.directory_key: 40 characters"}})
    BOOST_TEST(refusal(base, {set}).find(part) != std::string::npos, refusal(base, {set}));
  BOOST_TEST(load(base, {"curve.directory_key=" + key, "curve.folder=k"}).has_value());
}

BOOST_AUTO_TEST_CASE(links_get_their_limits_from_the_config) {
  const link_limits limits =
      load(base, {"link.timeout=0.25", "link.min_rate=2KiB"}).value().link.limits();
  BOOST_TEST(limits.timeout.count() == 250);
  BOOST_TEST(limits.min_rate == 2048U);
}

BOOST_AUTO_TEST_CASE(the_digest_follows_every_change) {
  const auto digest = [](std::vector<std::string> sets) {
    return config_digest(load(base, std::move(sets)).value()).hex();
  };
  BOOST_TEST(digest({}) == digest({"scorer.instances=1"}));
  BOOST_TEST(digest({}) != digest({"scorer.instances=2"}));
  BOOST_TEST(digest({}) != digest({"env.math.group_size=2"}));
}

BOOST_AUTO_TEST_CASE(a_models_config_makes_the_costs) {
  const test::temporary_folder folder;
  const auto file = folder / "config.json";
  BOOST_REQUIRE(write_file_atomically(
      file, R"({"hidden_size": 1, "num_hidden_layers": 1, "num_attention_heads": 1,
                "intermediate_size": 1, "vocab_size": 1})"));
  const auto model = "cost.model=" + file.string();
  const auto config = load(base, {model}).value();
  BOOST_TEST(config.plan.cost.linear == 18); // projections 8, itself 2, block 6, output 2
  BOOST_TEST(config.plan.cost.quadratic == 2);
  BOOST_TEST(
      shared_config_digest(config).hex() ==
      shared_config_digest(load(base, {"cost.linear=18", "cost.quadratic=2"}).value()).hex());
  BOOST_TEST(refusal(base, {model, "cost.linear=17"}) ==
             "cost.linear in --set: 17, and cost.model makes it 18: leave one out\n");
  BOOST_TEST(refusal(base + "cost.quadratic = 1\n", {model}) ==
             "cost.quadratic in dir/run.toml:3: 1, and cost.model makes it 2: leave one out\n");
  BOOST_TEST(load(base, {model, "cost.linear=18"}).has_value());
  BOOST_REQUIRE(write_file_atomically(file, std::string_view("{}")));
  BOOST_TEST(refusal(base, {model}) ==
             "cost.model: " + file.string() + ": num_hidden_layers: it is missing\n");
}

BOOST_AUTO_TEST_CASE(the_gibberish_filter_wants_the_models_vocabulary) {
  const std::string on = base + "env.math.filter.gibberish.action = \"count\"\n";
  BOOST_TEST(refusal(on) == "dir/run.toml: env.math.filter.gibberish measures against the model's "
                            "vocabulary: set vocab_size\n");
  BOOST_TEST(refusal(on, {"vocab_size=100000"}) ==
             "dir/run.toml: env.math.filter.gibberish.token_id_threshold = 100000 is not below "
             "vocab_size = 100000: no token has an id above it\n");
  BOOST_TEST(load(on, {"vocab_size=100001"}).has_value());
}

BOOST_AUTO_TEST_CASE(a_live_environment_wants_its_policy_versions_and_a_group_size) {
  const std::string live = "source.env = \"bigram\"\nsource.version = \"recorded\"\n"
                           "batch.traces = 8\nvocab_size = 16\ntrainer.policy = \"bigram\"\n";
  const std::string sized = live + "env.bigram.group_size = 4\n";
  BOOST_TEST(load(sized).has_value());
  const auto refused = [&](const std::string &text, std::string_view why) {
    const auto found = refusal(text);
    BOOST_TEST(found.find(why) != std::string::npos, found);
  };
  refused(live, "env.bigram.group_size");
  refused(sized + "deterministic = true\n", "set deterministic to false");
  refused(sized + "env_reader.instances = 2\n", "set env_reader.instances to 1");
  refused(sized + "state = \"s\"\n", "set assembler.journal to true");
  BOOST_TEST(load(sized + "state = \"s\"\nassembler.journal = true\n").has_value());
  BOOST_TEST(refusal(sized, {"source.version=fresh"}).find("set source.version to recorded") !=
             std::string::npos);
  BOOST_TEST(refusal(sized, {"trainer.policy=replay"}).find("set trainer.policy to it") !=
             std::string::npos);
  refused(base + "source.record = \"r.mrec\"\n", "only a live environment");
}

BOOST_AUTO_TEST_CASE(a_table_of_logits_wants_a_vocabulary_that_it_can_hold) {
  const auto with = [](const std::string &more) {
    return refusal(base + "trainer.policy = \"bigram\"\n" + more);
  };
  BOOST_TEST(with("").find("set it to 2 to 4096") != std::string::npos);
  BOOST_TEST(with("vocab_size = 1\n").find("set it to 2 to 4096") != std::string::npos);
  BOOST_TEST(with("vocab_size = 4096\n") == "(it loads)");
}

BOOST_AUTO_TEST_SUITE_END()
