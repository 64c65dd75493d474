// SPDX-License-Identifier: Apache-2.0
// The command line: flags to requests, requests to commands. No logic.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "launch/actor_command.hpp"
#include "launch/attach_commands.hpp"
#include "launch/commands.hpp"
#include "launch/run_command.hpp"
#include "launch/terminal.hpp"
#include "runtime/nearest.hpp"

namespace millrace {
namespace {

constexpr std::string_view examples = R"(Examples:
  millrace run config/quickstart.toml --json q.json      every stage, on made-up episodes
  millrace synth --preset quickstart -o quick.mrec       make up a recording
  millrace import traces.jsonl -o traces.mrec            published trace files as a recording
  millrace inspect traces.mrec                           what is in it; --json for programs
  millrace inspect STATE/planner.log                     what a run has done so far
  millrace run config/quickstart.toml --set source.path=traces.mrec
  millrace conform tests/golden                          run golden vectors
  millrace why --config run.toml                         why a running system does not go on
  millrace config config/quickstart.toml                 every key with its value
  millrace keygen keys                                   CURVE keys for links between hosts

Exit codes: 0 success, 1 failed work, 2 bad use or config.)";

// CLI11 takes "-1" for an unsigned number, and its own check prints the largest double.
std::string whole_number(const std::string &text) {
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem == std::errc{} && end == text.data() + text.size())
    return "";
  return fmt::format("'{}' is not a whole number from 0 to {}", text, UINT64_MAX);
}

std::string seconds(const std::string &text) {
  char *end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0' && value >= 0.1 && value <= 86'400)
    return "";
  return fmt::format("'{}' is not a number of seconds from 0.1 to 86400", text);
}

/// The program's arguments, and where CLI11 puts what it finds.
class command_line {
public:
  command_line() {
    app_.require_subcommand(0, 1);
    app_.set_version_flag("--version", "millrace " MILLRACE_VERSION);
    add_run();
    add_actor();
    add_import();
    add_synth();
    add_inspect();
    add_conform();
    add_config();
    add_keygen();
    add_status();
    add_why();
    add_top();
    add_drain();
    app_.footer(std::string(examples)); // last: the commands would inherit it
  }

  int run(int argc, char **argv) {
    if (argc > 1 && argv[1][0] != '-' && !knows(argv[1]))
      return unknown_command(argv[1]);
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp &) {
      return print_and_exit(app_.help());
    } catch (const CLI::CallForVersion &) {
      return print_and_exit(app_.version() + "\n");
    } catch (const CLI::ParseError &problem) {
      return complain(error{errc::bad_argument,
                            fmt::format("{}; see millrace {}--help", problem.what(), command())});
    }
    if (actor_cli_->parsed())
      return actor_command(actor_);
    if (run_cli_->parsed())
      return run_command(run_);
    if (import_cli_->parsed())
      return import_command(import_);
    if (synth_cli_->parsed())
      return synth_command(synth_);
    if (inspect_cli_->parsed())
      return inspect_command(inspect_);
    if (conform_cli_->parsed())
      return conform_command(conform_);
    if (config_cli_->parsed())
      return config_command(config_);
    if (keygen_cli_->parsed())
      return keygen_command(keygen_);
    if (status_cli_->parsed())
      return status_command(status_);
    if (why_cli_->parsed())
      return why_command(why_);
    if (top_cli_->parsed())
      return top_command(top_);
    if (drain_cli_->parsed())
      return drain_command(drain_);
    return complain(error{errc::bad_argument, "no command is given; see millrace --help"});
  }

private:
  static void add_config_options(CLI::App &command, std::filesystem::path &config,
                                 std::vector<std::string> &sets) {
    command.add_option("CONFIG", config, "A .toml file")->required();
    command.add_option("--set", sets, "key=value, over what CONFIG says; may be repeated")
        ->type_size(1)
        ->allow_extra_args(false);
  }

  void add_actor() {
    actor_cli_ = app_.add_subcommand(
        "actor", "Roles of a run in this process; other processes have the others");
    actor_cli_
        ->add_option("ROLES", actor_.roles,
                     "Of directory, env-reader, assembler, scorer, planner, packer, trainer; "
                     "several with commas")
        ->required();
    actor_cli_->add_option("--config", actor_.config, "The .toml file of all processes")
        ->required();
    actor_cli_->add_option("--set", actor_.sets, "key=value, over what the file says")
        ->type_size(1)
        ->allow_extra_args(false);
    actor_cli_->add_option("--name", actor_.name,
                           "Name in the run; of an env reader its number [HOST-PID]");
    actor_cli_->add_option("--rank", actor_.rank, "Of a trainer");
    actor_cli_->add_option("--steps", actor_.steps, "Stop after so many steps; with the planner")
        ->check(whole_number);
    actor_cli_->add_option("--json", actor_.json,
                           "Write the run's summary for programs; with the planner");
    actor_cli_->add_option("--dump", actor_.dump,
                           "Write the tensors of every micro batch below it, and parameters; with "
                           "trainers");
    actor_cli_->add_option("--export", actor_.exports,
                           "Write annotated tokens below it, as JSON lines; with trainers");
    actor_cli_->add_flag("--allow-damage", actor_.allow_damage,
                         "Exit 0 even if bytes are damaged; with the planner");
    actor_cli_->add_option("--endpoint-file", actor_.endpoint_file,
                           "Write there where this process is reached");
  }

  void add_run() {
    run_cli_ = app_.add_subcommand("run", "All stages in this process, from a source to the "
                                          "tensors of every trainer rank");
    add_config_options(*run_cli_, run_.config, run_.sets);
    run_cli_->add_option("--steps", run_.steps, "Stop after so many steps")->check(whole_number);
    run_cli_->add_option("--json", run_.json, "Write a summary for programs");
    run_cli_->add_option("--dump", run_.dump,
                         "Write the tensors of every micro batch below it, and parameters");
    run_cli_->add_option("--export", run_.exports,
                         "Write annotated tokens below it, as JSON lines");
    run_cli_->add_flag("--allow-damage", run_.allow_damage, "Exit 0 even if bytes are damaged");
    run_cli_
        ->add_option("--schedule-seed", run_.schedule_seed,
                     "For tests: yield at random, by this seed, before events are handled")
        ->check(whole_number);
  }

  void add_import() {
    import_cli_ = app_.add_subcommand(
        "import", "Published trace files (JSON lines) as a recording: episodes as prime-rl and "
                  "verifiers write them, and NeMo Gym rollouts");
    import_cli_->add_option("TRACES", import_.traces, "A .jsonl file")->required();
    import_cli_->add_option("-o,--out", import_.out, "The recording to write")->required();
    import_cli_->add_flag("--eval", import_.eval, "Take episodes for evaluation too");
  }

  void add_synth() {
    auto &options = synth_.options;
    synth_cli_ = app_.add_subcommand("synth", "Make up a recording");
    synth_cli_->add_option("--preset", options.preset, "What to make up")->required();
    synth_cli_->add_option("--scale", options.scale, "Times the preset's groups [1]");
    synth_cli_->add_option("--seed", options.seed, "Same seed, same bytes [1]")
        ->check(whole_number);
    synth_cli_->add_flag("--loose", options.loose, "Episodes as loose frames, none sealed");
    synth_cli_->add_option("-o,--out", synth_.out, "The recording to write")->required();
  }

  void add_inspect() {
    inspect_cli_ = app_.add_subcommand("inspect", "What is in a recording or in a planner's log");
    inspect_cli_
        ->add_option("FILE", inspect_.file, "A .mrec file, or the planner.log of a state folder")
        ->required();
    inspect_cli_->add_flag("--json", inspect_.json, "For a program");
    inspect_cli_->add_flag("--allow-damage", inspect_.allow_damage,
                           "Exit 0 even if bytes are damaged");
  }

  void add_conform() {
    conform_cli_ = app_.add_subcommand("conform", "Run golden vectors");
    conform_cli_->add_option("DIR", conform_.cases, "Folder with graph, scoring, packing, ...")
        ->required();
  }

  void add_config() {
    config_cli_ = app_.add_subcommand("config", "The config in effect: every key with its value");
    add_config_options(*config_cli_, config_.config, config_.sets);
  }

  void add_keygen() {
    keygen_cli_ = app_.add_subcommand("keygen", "Make CURVE keys for links between hosts");
    keygen_cli_->add_option("DIR", keygen_.folder, "Folder to make them in")->required();
  }

  static void add_attach_options(CLI::App &command, attach_request &where) {
    command.add_option("--config", where.config, "The .toml file of the system's processes");
    command.add_option("--set", where.sets, "key=value, over what CONFIG says; may be repeated")
        ->type_size(1)
        ->allow_extra_args(false);
    command.add_option("--connect", where.connect, "Where its directory or its run listens");
    command.add_option("--wait", where.wait_s, "Seconds to wait for an answer [5]")->check(seconds);
  }

  void add_status() {
    status_cli_ =
        app_.add_subcommand("status", "Who is there in a running system, and how it goes");
    add_attach_options(*status_cli_, status_.where);
    status_cli_->add_flag("--json", status_.json, "For a program");
  }

  void add_why() {
    why_cli_ = app_.add_subcommand("why", "Who waits for whom in a running system, and since when");
    add_attach_options(*why_cli_, why_.where);
    why_cli_->add_flag("--json", why_.json, "For a program");
  }

  void add_top() {
    top_cli_ = app_.add_subcommand("top", "status and why, again and again");
    add_attach_options(*top_cli_, top_.where);
    top_cli_->add_option("--interval", top_.interval_s, "Seconds between two looks [2]")
        ->check(seconds);
    top_cli_->add_flag("--once", top_.once, "Only one look");
  }

  void add_drain() {
    drain_cli_ = app_.add_subcommand("drain", "Let a process of a running system finish and leave");
    drain_cli_->add_option("NAME", drain_.name, "Of the process, or of one of its actors")
        ->required();
    add_attach_options(*drain_cli_, drain_.where);
  }

  std::vector<std::string_view> commands() const {
    std::vector<std::string_view> names;
    for (const CLI::App *each :
         {run_cli_, actor_cli_, import_cli_, synth_cli_, inspect_cli_, conform_cli_, config_cli_,
          keygen_cli_, status_cli_, why_cli_, top_cli_, drain_cli_})
      names.push_back(each->get_name());
    return names;
  }

  bool knows(std::string_view name) const {
    const auto names = commands();
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  int unknown_command(std::string_view name) const {
    const auto guess = nearest(name, commands());
    return complain(
        error{errc::bad_argument, fmt::format("unknown command '{}'{}", name,
                                              guess ? fmt::format("; did you mean '{}'?", *guess)
                                                    : "; see millrace --help")});
  }

  /// The command that was being parsed and a space, for messages.
  std::string command() const {
    const auto parsed = app_.get_subcommands();
    return parsed.empty() ? "" : parsed.back()->get_name() + " ";
  }

  CLI::App app_{"millrace: the data path of LLM reinforcement learning", "millrace"};
  CLI::App *run_cli_ = nullptr;
  CLI::App *actor_cli_ = nullptr;
  CLI::App *import_cli_ = nullptr;
  CLI::App *synth_cli_ = nullptr;
  CLI::App *inspect_cli_ = nullptr;
  CLI::App *conform_cli_ = nullptr;
  CLI::App *config_cli_ = nullptr;
  CLI::App *keygen_cli_ = nullptr;
  CLI::App *status_cli_ = nullptr;
  CLI::App *why_cli_ = nullptr;
  CLI::App *top_cli_ = nullptr;
  CLI::App *drain_cli_ = nullptr;
  run_request run_;
  actor_request actor_;
  import_request import_;
  synth_request synth_;
  inspect_request inspect_;
  conform_request conform_;
  config_request config_;
  keygen_request keygen_;
  status_request status_;
  why_request why_;
  top_request top_;
  drain_request drain_;
};

} // namespace
} // namespace millrace

int main(int argc, char **argv) {
  millrace::prepare_terminal();
  return millrace::command_line().run(argc, argv);
}
