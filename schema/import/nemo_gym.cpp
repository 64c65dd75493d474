// SPDX-License-Identifier: Apache-2.0
#include "schema/import/nemo_gym.hpp"

#include <algorithm>
#include <initializer_list>

#include "schema/import/turn_graph.hpp"

namespace millrace {

namespace {

/// Finding where a turn goes on looks at all turns before it.
constexpr std::size_t most_turns = 65'536;

bool recognises(const json::value &record) {
  for (const char *key : {"response", "responses_create_params", "_ng_task_index"})
    if (const auto found = record.field(key); found && *found)
      return true;
  return false;
}

result<bool> is_eval(const json::value &) { return false; }

result<record_identity> identify(const json::value &record, std::uint64_t line) {
  record_identity out;
  out.key = {.run = {}, .env = "nemo_gym", .task = {}, .group = "0"};
  out.episode = fmt::format("line-{}", line);
  MILLRACE_TRY(take_name(record, "agent_ref.name", out.key.env));
  MILLRACE_TRY(take_name(record, "task_idx", out.key.task));
  MILLRACE_TRY(take_name(record, "_ng_task_index", out.key.task));
  MILLRACE_TRY(take_name(record, "_ng_group_id", out.key.group));
  MILLRACE_TRY(take_name(record, "_ng_rollout_index", out.episode));
  out.slot = line;
  MILLRACE_TRY(take(record, "_ng_rollout_index", out.slot));
  if (out.key.env == "all")
    return fail(errc::bad_value, "agent_ref.name: 'all' is reserved; give the agent another name");
  if (out.key.task.empty())
    return fail(errc::bad_value,
                "_ng_task_index: is missing: which group it belongs to is unknown");
  return out;
}

/// What a field that tells of an error says; empty if it tells of none.
std::string error_text(const json::value &value) {
  switch (value.type()) {
  case json::kind::text:
    return *value.as<std::string>();
  case json::kind::object: {
    std::string message = "an error";
    (void)take(value, "message", message).has_value();
    return message;
  }
  case json::kind::array: {
    const auto items = value.items();
    return items->empty() ? "" : "the record lists errors";
  }
  default:
    return {};
  }
}

result<std::optional<std::string>> failure(const json::value &record) {
  std::optional<bool> ok;
  MILLRACE_TRY(take(record, "ok", ok));
  std::string why;
  for (const char *field : {"exception_type", "errors", "response.error"}) {
    const auto found = find_at(record, field);
    if (!found)
      return tl::unexpected(found.error());
    if (*found && why.empty())
      why = error_text(**found);
  }
  if (!why.empty())
    return reason_text(why);
  if (ok && !*ok)
    return "the record says ok: false";
  return std::nullopt;
}

/// What the items of `response.output` said since the last turn.
struct pending_text {
  std::string prompt;
  std::string answer;
  std::string role = "user";
};

void add_line(std::string &text, std::string_view line) {
  if (!text.empty() && !line.empty())
    text += '\n';
  text += line;
}

/// Text that a field of an item holds, whatever form it has.
std::string text_at(const json::value &item, std::string_view key) {
  const auto found = find_at(item, key);
  return found && *found ? content_text(**found) : std::string{};
}

void collect(const json::value &item, pending_text &out) {
  std::string type = "message";
  std::string role = "assistant";
  (void)take(item, "type", type).has_value();
  (void)take(item, "role", role).has_value();
  if (type == "function_call_output") {
    out.role = "tool";
    add_line(out.prompt, text_at(item, "output"));
  } else if (type == "function_call") {
    add_line(out.answer,
             fmt::format("[tool call {}({})]", text_at(item, "name"), text_at(item, "arguments")));
  } else if (type == "reasoning") {
    add_line(out.answer, text_at(item, "summary"));
  } else if (role == "assistant") {
    add_line(out.answer, text_at(item, "content"));
  } else {
    add_line(out.prompt, text_at(item, "content"));
  }
}

/// The prompt that a rollout began with: a text, or a list of messages.
std::string input_text(const json::value &input) {
  const auto messages = input.items();
  if (!messages)
    return content_text(input);
  std::string out;
  for (const auto &message : *messages)
    if (message.type() == json::kind::object)
      add_line(out, text_at(message, "content"));
  return out;
}

/// Reads one item's turn; nothing if it carries none, or one without any token.
result<std::optional<model_turn>> read_turn(const json::value &item) {
  model_turn turn;
  std::optional<json::value> sampled;
  MILLRACE_TRY(take(item, "generation_token_ids", sampled));
  MILLRACE_TRY(take(item, "generation_token_ids", turn.sampled));
  MILLRACE_TRY(take(item, "prompt_token_ids", turn.prompt));
  MILLRACE_TRY(take(item, "generation_log_probs", turn.logprobs));
  if (!sampled && (!turn.prompt.empty() || !turn.logprobs.empty()))
    return item.wrong("prompt_token_ids or generation_log_probs without generation_token_ids");
  if (turn.prompt.empty() && turn.sampled.empty() && turn.logprobs.empty())
    return std::nullopt;
  if (turn.prompt.empty())
    return item.wrong("{} generation_token_ids, and prompt_token_ids is empty",
                      turn.sampled.size());
  if (turn.logprobs.size() != turn.sampled.size())
    return item.wrong("generation_log_probs has {} values for {} generation_token_ids",
                      turn.logprobs.size(), turn.sampled.size());
  for (const auto *ids : {&turn.prompt, &turn.sampled})
    for (std::size_t i = 0; i < ids->size(); ++i)
      if ((*ids)[i] < 0)
        return item.wrong("{}[{}] is {}, a token id is not negative",
                          ids == &turn.prompt ? "prompt_token_ids" : "generation_token_ids", i,
                          (*ids)[i]);
  return turn;
}

/// Adds a turn and what was said in it.
void add_turn(model_turn turn, pending_text &said, turn_graph &graph,
              std::vector<imported_text> &texts) {
  const auto before = graph.nodes().size();
  turn.prompt_role = said.role;
  graph.add(std::move(turn));
  for (auto i = before; i < graph.nodes().size(); ++i) {
    const auto &node = graph.nodes()[i];
    auto &text = node.sampled ? said.answer : said.prompt;
    if (!text.empty())
      texts.push_back({0, node.index, node.role, std::move(text)});
  }
  said = {};
}

status read_output(const json::value &record, record_content &out) {
  const auto output = find_at(record, "response.output");
  if (!output)
    return tl::unexpected(output.error());
  if (!*output)
    return {};
  const auto items = (*output)->items();
  if (!items)
    return tl::unexpected(items.error());
  turn_graph graph;
  pending_text said;
  if (const auto input = find_at(record, "responses_create_params.input"); input && *input)
    said.prompt = input_text(**input);
  std::size_t turns = 0;
  for (const auto &item : *items) {
    auto turn = read_turn(item);
    if (!turn)
      return tl::unexpected(std::move(turn).error());
    collect(item, said);
    if (!*turn)
      continue;
    if (++turns > most_turns)
      return (*output)->wrong("more than {} turns", most_turns);
    add_turn(std::move(**turn), said, graph, out.texts);
  }
  out.nodes = graph.take_nodes();
  return {};
}

result<record_content> read(const json::value &record) {
  record_content out;
  trace_result_data trace;
  const auto failed = failure(record);
  if (!failed)
    return tl::unexpected(failed.error());
  trace.ok = !*failed;
  trace.agent = "agent";
  MILLRACE_TRY(take_name(record, "response.id", trace.id));
  MILLRACE_TRY(take_name(record, "agent_ref.name", trace.agent));
  MILLRACE_TRY(read_output(record, out));
  if (trace.ok) {
    const auto reward = record.get<double>("reward");
    if (!reward)
      return tl::unexpected(reward.error());
    trace.reward = *reward;
  } else {
    MILLRACE_TRY(take(record, "reward", trace.reward));
  }
  out.traces.push_back(std::move(trace));
  return out;
}

bool any_covers(std::initializer_list<std::string_view> fields, std::string_view path) {
  return std::any_of(fields.begin(), fields.end(),
                     [path](std::string_view field) { return covers(field, path); });
}

bool names_record(std::string_view path) {
  return any_covers(
      {"agent_ref", "task_idx", "_ng_task_index", "_ng_group_id", "_ng_rollout_index"}, path);
}

/// All else at the top of a record are numbers and notes of the environment.
bool reads(std::string_view path) {
  return names_record(path) || any_covers({"ok", "errors", "exception_type", "reward", "response",
                                           "responses_create_params"},
                                          path);
}

} // namespace

const record_format nemo_gym_format = {
    .tokens_at = "response.output[*].generation_token_ids",
    .recognises = recognises,
    .is_eval = is_eval,
    .identify = identify,
    .failure = failure,
    .read = read,
    .names_record = names_record,
    .reads = reads,
};

} // namespace millrace
