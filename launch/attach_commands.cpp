// SPDX-License-Identifier: Apache-2.0
#include "launch/attach_commands.hpp"

#include <chrono>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

#include <unistd.h>

#include "actors/node/host_codec.hpp"
#include "actors/node/status_text.hpp"
#include "actors/state_folder.hpp"
#include "config/run_config.hpp"
#include "launch/terminal.hpp"
#include "runtime/utf8.hpp"
#include "transport/client.hpp"

namespace millrace {
namespace {

using errors = std::vector<error>;

/// Where somebody may answer.
struct place {
  std::string endpoint;
  std::string server_key;
  std::optional<curve_config> curve;
};

/// A directory, and how to ask it.
struct directory_address {
  std::vector<place> places; ///< the first that answers
  std::string run;           ///< empty: whichever it is
  std::chrono::milliseconds deadline{};
};

result<place> directory_of(const run_config &config, const std::string &connect) {
  place made{connect.empty() ? config.link.directory : connect, {}, {}};
  if (config.link.curve_folder.empty())
    return made;
  auto keys = load_keys(config.link.curve_folder);
  if (!keys)
    return tl::unexpected(std::move(keys).error());
  made.server_key =
      config.link.directory_key.empty() ? keys->mine.public_key : config.link.directory_key;
  made.curve = *std::move(keys);
  return made;
}

/// A run that is one process answers at its control socket; many processes have a directory.
tl::expected<directory_address, errors> find_directory(const attach_request &request) {
  directory_address found;
  found.deadline = std::chrono::milliseconds(static_cast<std::int64_t>(request.wait_s * 1'000));
  if (request.config.empty()) {
    if (request.connect.empty())
      return tl::unexpected(
          errors{{errc::bad_argument,
                  "no system is named: give --config CONFIG (the file of its processes) or "
                  "--connect ENDPOINT (where its directory or its run listens)"}});
    found.places = {{request.connect, {}, {}}};
    return found;
  }
  const auto config = load_config(request.config, request.sets);
  if (!config)
    return tl::unexpected(config.error());
  found.run = config->id;
  const auto socket = control_socket(config->state);
  std::error_code unknown;
  if (request.connect.empty() && !config->state.empty() && std::filesystem::exists(socket, unknown))
    found.places.push_back({"ipc://" + socket.string(), {}, {}});
  auto directory = directory_of(*config, request.connect);
  if (!directory)
    return tl::unexpected(errors{std::move(directory).error()});
  found.places.push_back(*std::move(directory));
  return found;
}

/// From the first place that answers, which stays the only one.
result<message> ask_first(directory_address &where, const message &question) {
  std::string complaints;
  errc code = errc::bad_argument;
  for (place &each : where.places) {
    auto got = ask(each.endpoint, each.server_key, each.curve, where.run, question, where.deadline);
    if (got) {
      where.places = {place(std::move(each))};
      return got;
    }
    code = got.error().code;
    complaints += (complaints.empty() ? "" : "; ") + got.error().message;
  }
  return fail(code, "{}", complaints);
}

/// One question, and the answer of the type that belongs to it.
template <class Answer, class Question>
result<Answer> ask_directory(directory_address &where, const Question &question) {
  auto got = ask_first(where, encode(host_parcel{question}));
  if (!got)
    return tl::unexpected(std::move(got).error());
  auto parcel = decode_host(*got);
  if (!parcel)
    return with_context(std::move(parcel).error(), where.places.front().endpoint);
  if (auto *answer = std::get_if<Answer>(&parcel->what))
    return std::move(*answer);
  return fail(errc::bad_format, "{} does not answer as a directory does",
              where.places.front().endpoint);
}

constexpr std::chrono::seconds between_answers{1};

struct two_answers {
  status_answer before;
  status_answer now;
};

result<two_answers> ask_twice(directory_address &where) {
  auto before = ask_directory<status_answer>(where, status_question{});
  if (!before)
    return tl::unexpected(before.error());
  std::this_thread::sleep_for(between_answers);
  auto now = ask_directory<status_answer>(where, status_question{});
  if (!now)
    return tl::unexpected(now.error());
  return two_answers{*std::move(before), *std::move(now)};
}

std::string screen_of(const status_answer &now, const status_answer *before) {
  return status_text(now, before) + '\n' + why_text(now);
}

/// From the upper left, over what was there.
constexpr std::string_view new_screen = "\x1b[H\x1b[2J";

/// A directory that is started again answers again: only silence for the whole deadline ends it.
int watch(directory_address &where, double interval_s) {
  using clock = std::chrono::steady_clock;
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  std::optional<status_answer> before;
  for (auto answered = clock::now();;) {
    auto now = ask_directory<status_answer>(where, status_question{});
    if (now) {
      const auto screen = screen_of(*now, before ? &*before : nullptr);
      const status printed =
          print(is_terminal ? std::string(new_screen) + screen : (before ? "\n" : "") + screen);
      if (!printed)
        return complain(printed.error());
      before = *std::move(now);
      answered = clock::now();
    } else if (!before || clock::now() - answered > where.deadline) {
      return complain(now.error());
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(interval_s));
  }
}

} // namespace

int status_command(const status_request &request) {
  auto where = find_directory(request.where);
  if (!where)
    return complain(where.error());
  const auto answers = ask_twice(*where);
  if (!answers)
    return complain(answers.error());
  if (request.json)
    return print_and_exit(json::dump(status_json(answers->now, &answers->before), 2) + "\n");
  return print_and_exit(status_text(answers->now, &answers->before));
}

int why_command(const why_request &request) {
  auto where = find_directory(request.where);
  if (!where)
    return complain(where.error());
  const auto answer = ask_directory<status_answer>(*where, status_question{});
  if (!answer)
    return complain(answer.error());
  if (request.json)
    return print_and_exit(json::dump(why_json(*answer), 2) + "\n");
  return print_and_exit(why_text(*answer));
}

int top_command(const top_request &request) {
  auto where = find_directory(request.where);
  if (!where)
    return complain(where.error());
  if (!request.once)
    return watch(*where, request.interval_s);
  const auto answers = ask_twice(*where);
  if (!answers)
    return complain(answers.error());
  return print_and_exit(screen_of(answers->now, &answers->before));
}

int drain_command(const drain_request &request) {
  auto where = find_directory(request.where);
  if (!where)
    return complain(where.error());
  const auto answer = ask_directory<tool_answer>(*where, drain_question{request.name});
  if (!answer)
    return complain(answer.error());
  if (!answer->ok)
    return complain(error{errc::conflict, answer->text});
  return print_and_exit(to_one_line(answer->text) + "\n");
}

} // namespace millrace
