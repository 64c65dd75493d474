// SPDX-License-Identifier: Apache-2.0
#include "schema/import/traces.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

#include "schema/limits.hpp"

namespace millrace {

namespace {

bool has(const json::value &record, std::string_view key) {
  const auto found = record.field(key);
  return found && found->has_value();
}

bool recognises(const json::value &record) {
  const auto env = find_at(record, "env");
  return has(record, "traces") || (env && *env && (*env)->type() == json::kind::object);
}

result<bool> is_eval(const json::value &record) {
  std::string run;
  std::string work;
  MILLRACE_TRY(take_name(record, "run.type", run));
  MILLRACE_TRY(take_name(record, "run.work.type", work));
  return run == "eval" || work == "eval";
}

result<record_identity> identify(const json::value &record, std::uint64_t line) {
  record_identity out;
  out.episode = fmt::format("line-{}", line);
  MILLRACE_TRY(take_name(record, "id", out.episode));
  MILLRACE_TRY(take_name(record, "run.id", out.key.run));
  MILLRACE_TRY(take_name(record, "env.id", out.key.env));
  MILLRACE_TRY(take_name(record, "env.name", out.key.env));
  // Each name that is there takes the place of a weaker one.
  for (const char *field : {"task.type", "task.hash", "task.key"})
    MILLRACE_TRY(take_name(record, field, out.key.task));
  MILLRACE_TRY(take_name(record, "group.id", out.key.group));
  if (out.key.env.empty())
    return fail(errc::bad_value, "env.name: is missing, and so is env.id");
  if (out.key.env == "all")
    return fail(errc::bad_value, "env.name: 'all' is reserved; give the environment another name");
  if (out.key.group.empty() && out.key.task.empty())
    return fail(errc::bad_value, "group.id: is missing, and task.key does not stand in for it");
  return out;
}

/// "TypeError: message" of the last error of a list, or "".
std::string last_error(const json::value &errors) {
  const auto items = errors.items();
  if (!items || items->empty())
    return {};
  std::string type;
  std::string message;
  const auto &last = items->back();
  if (last.type() == json::kind::text)
    return *last.as<std::string>();
  if (last.type() != json::kind::object || !take(last, "type", type) ||
      !take(last, "message", message))
    return "an error";
  return type + (type.empty() || message.empty() ? "" : ": ") + message;
}

/// `ok` decides: the errors of attempts that were tried again stay in a record that went well.
/// Without `ok`, a record with errors failed.
result<std::optional<std::string>> failure(const json::value &record) {
  std::optional<bool> ok;
  MILLRACE_TRY(take(record, "ok", ok));
  std::optional<json::value> errors;
  MILLRACE_TRY(take(record, "errors", errors));
  auto why = errors ? last_error(*errors) : std::string{};
  if (ok ? *ok : why.empty())
    return std::nullopt;
  return reason_text(why.empty() ? "the record says ok: false" : why);
}

status read_versions(const json::value &record, record_content &out) {
  const auto work = find_at(record, "run.work");
  if (!work)
    return tl::unexpected(work.error());
  if (!*work)
    return {};
  std::optional<json::value> policy;
  MILLRACE_TRY(take(**work, "policy", policy));
  if (!policy) {
    out.frozen = true;
    return {};
  }
  const auto start = policy->get<std::uint64_t>("start");
  const auto end = policy->get<std::uint64_t>("end");
  if (!start || !end)
    return tl::unexpected(start ? end.error() : start.error());
  if (*end < *start)
    return policy->wrong("ends with version {}, before it starts with {}", *end, *start);
  out.first_version = *start;
  out.last_version = *end;
  return {};
}

/// The sum of score * weight over what was given. A trace that counts and has rewards, all of them
/// null, was never scored: that is not 0.
status read_reward(const json::value &trace, bool counts, double &reward) {
  std::optional<json::value> rewards;
  MILLRACE_TRY(take(trace, "rewards", rewards));
  if (!rewards)
    return {};
  const auto members = rewards->members();
  if (!members)
    return tl::unexpected(members.error());
  bool given = members->empty();
  for (const auto &[name, value] : *members) {
    if (value.is_null())
      continue;
    const auto score = value.get<double>("score");
    if (!score)
      return tl::unexpected(score.error());
    double weight = 1;
    MILLRACE_TRY(take(value, "weight", weight));
    reward += *score * weight;
    given = true;
  }
  if (!std::isfinite(reward))
    return rewards->wrong("their sum is {}", reward);
  if (counts && !given)
    return rewards->wrong("all are null: nobody scored this trace");
  return {};
}

status read_weights(const json::value &in, node_data &out) {
  std::optional<json::value> weights;
  MILLRACE_TRY(take(in, "loss_weights", weights));
  if (!weights)
    return {};
  MILLRACE_TRY(take(*weights, "rl", out.rl_weights));
  MILLRACE_TRY(take(*weights, "ce", out.ce_weights));
  return take(*weights, "ref_kl", out.ref_kl_weights);
}

/// "\n[tool call NAME(ARGUMENTS)]" for each.
std::string tool_calls(const json::value &message) {
  std::string out;
  const auto calls = find_at(message, "tool_calls");
  if (!calls || !*calls)
    return out;
  const auto items = (*calls)->items();
  if (!items)
    return out;
  for (const auto &call : *items) {
    std::string name;
    std::string arguments;
    if (call.type() == json::kind::object && take(call, "name", name) &&
        take(call, "arguments", arguments))
      out += fmt::format("\n[tool call {}({})]", name, arguments);
  }
  return out;
}

status read_message(const json::value &in, node_data &node, std::vector<imported_text> &texts) {
  node.role = node.sampled ? "assistant" : "user";
  const auto message = find_at(in, "message");
  if (!message)
    return tl::unexpected(message.error());
  if (!*message)
    return {};
  MILLRACE_TRY(take_name(**message, "role", node.role));
  std::optional<json::value> content;
  MILLRACE_TRY(take(**message, "content", content));
  auto text = (content ? content_text(*content) : std::string{}) + tool_calls(**message);
  if (!text.empty())
    texts.push_back({node.trace, node.index, node.role, std::move(text)});
  return {};
}

status read_node(const json::value &in, node_data node, record_content &out) {
  std::optional<json::value> parent;
  MILLRACE_TRY(take(in, "parent", parent));
  if (parent) {
    const auto index = parent->as<std::int64_t>();
    if (!index)
      return tl::unexpected(index.error());
    if (*index < 0 || *index >= node.index)
      return parent->wrong("{} does not come before node {}", *index, node.index);
    node.parent = static_cast<std::int32_t>(*index);
  }
  MILLRACE_TRY(take(in, "sampled", node.sampled));
  MILLRACE_TRY(take(in, "token_ids", node.token_ids));
  MILLRACE_TRY(take(in, "mask", node.mask));
  MILLRACE_TRY(take(in, "is_content", node.is_content));
  MILLRACE_TRY(take(in, "logprobs", node.logprobs));
  MILLRACE_TRY(take(in, "advantages", node.advantages));
  MILLRACE_TRY(take(in, "reference_logprobs", node.reference_logprobs));
  MILLRACE_TRY(read_weights(in, node));
  MILLRACE_TRY(read_message(in, node, out.texts));
  MILLRACE_TRY(check_imported(node, in.path()));
  out.nodes.push_back(std::move(node));
  return {};
}

/// The tensors of images are not written to trace files. Image tokens without their images would be
/// trained as if they were text.
status refuse_images(const json::value &trace, std::span<const node_data> nodes) {
  std::optional<json::value> types;
  MILLRACE_TRY(take(trace, "mm_token_type_id_map", types));
  if (!types)
    return {};
  const auto members = types->members();
  if (!members)
    return tl::unexpected(members.error());
  std::vector<std::int32_t> images;
  for (const auto &[key, type] : *members)
    if (std::int32_t id = 0;
        std::from_chars(key.data(), key.data() + key.size(), id).ec == std::errc{})
      images.push_back(id);
  std::sort(images.begin(), images.end());
  for (const auto &node : nodes)
    for (auto id : node.token_ids)
      if (std::binary_search(images.begin(), images.end(), id))
        return trace.wrong("node {} has image tokens ({}), and trace files do not hold images",
                           node.index, id);
  return {};
}

/// The hints of opsd that `from`, a free-form object, holds; what it has takes the place of a
/// weaker one.
status take_hint(const json::value &from, trace_result_data &trace) {
  if (from.type() != json::kind::object)
    return {};
  MILLRACE_TRY(take(from, "opsd_hint_token_ids", trace.hint_token_ids));
  return take(from, "opsd_hint", trace.hint);
}

/// The hint of a trace: its task's, unless its own info has one.
status read_hint(const json::value &record, const json::value &in, trace_result_data &trace) {
  std::optional<json::value> task;
  MILLRACE_TRY(take(record, "task", task));
  if (task && task->type() == json::kind::object) {
    std::optional<json::value> data;
    MILLRACE_TRY(take(*task, "data", data));
    MILLRACE_TRY(take_hint(*task, trace));
    if (data)
      MILLRACE_TRY(take_hint(*data, trace));
  }
  std::optional<json::value> info;
  MILLRACE_TRY(take(in, "info", info));
  return info ? take_hint(*info, trace) : status();
}

status read_trace(const json::value &record, const json::value &in, std::uint16_t index,
                  bool episode_ok, record_content &out) {
  trace_result_data trace;
  trace.ok = episode_ok;
  trace.agent = "agent";
  MILLRACE_TRY(take_name(in, "id", trace.id));
  MILLRACE_TRY(take(in, "ok", trace.ok));
  MILLRACE_TRY(take_name(in, "agent.name", trace.agent));
  const auto agent = find_at(in, "agent");
  if (!agent)
    return tl::unexpected(agent.error());
  if (*agent)
    MILLRACE_TRY(take(**agent, "trainable", trace.agent_trainable));
  MILLRACE_TRY(read_reward(in, trace.ok && trace.agent_trainable, trace.reward));
  MILLRACE_TRY(read_hint(record, in, trace));
  out.traces.push_back(std::move(trace));

  std::optional<json::value> nodes;
  MILLRACE_TRY(take(in, "nodes", nodes));
  if (!nodes)
    return {};
  const auto items = nodes->items();
  if (!items)
    return tl::unexpected(items.error());
  if (items->size() > limits::nodes_per_trace)
    return nodes->wrong("{} nodes, at most {} are allowed", items->size(), limits::nodes_per_trace);
  for (std::uint32_t i = 0; i < items->size(); ++i) {
    node_data node;
    node.trace = index;
    node.index = i;
    MILLRACE_TRY(read_node((*items)[i], std::move(node), out));
  }
  return refuse_images(in, std::span(out.nodes).last(items->size()));
}

result<record_content> read(const json::value &record) {
  record_content out;
  MILLRACE_TRY(read_versions(record, out));
  const auto failed = failure(record);
  if (!failed)
    return tl::unexpected(failed.error());
  std::optional<json::value> traces;
  MILLRACE_TRY(take(record, "traces", traces));
  if (!traces)
    return out;
  const auto items = traces->items();
  if (!items)
    return tl::unexpected(items.error());
  if (items->size() > limits::traces_per_episode)
    return traces->wrong("{} traces, at most {} are allowed", items->size(),
                         limits::traces_per_episode);
  for (std::size_t i = 0; i < items->size(); ++i)
    MILLRACE_TRY(read_trace(record, (*items)[i], static_cast<std::uint16_t>(i), !*failed, out));
  return out;
}

bool names_record(std::string_view path) {
  for (const char *field : {"id", "run", "env", "task.type", "task.hash", "task.key", "group"})
    if (covers(field, path))
      return true;
  return false;
}

/// Metrics, scratch space and times of a trace, and those of the episode, are for people; but a
/// trace's hint stands in its scratch space.
bool reads(std::string_view path) {
  if (path.substr(0, 7) == "traces[")
    if (const auto end = path.find("]."); end != std::string_view::npos)
      path.remove_prefix(end + 2);
  if (covers("info.opsd_hint", path) || covers("info.opsd_hint_token_ids", path))
    return true;
  return !covers("metrics", path) && !covers("info", path) && !covers("timing", path);
}

} // namespace

const record_format traces_format = {
    .tokens_at = "traces[*].nodes[*].token_ids",
    .recognises = recognises,
    .is_eval = is_eval,
    .identify = identify,
    .failure = failure,
    .read = read,
    .names_record = names_record,
    .reads = reads,
};

} // namespace millrace
