// SPDX-License-Identifier: Apache-2.0
#include "schema/import/record.hpp"

#include "runtime/utf8.hpp"

namespace millrace {

result<std::optional<json::value>> find_at(const json::value &from, std::string_view path) {
  std::optional<json::value> at = from;
  while (!path.empty()) {
    const auto dot = path.find('.');
    auto found = at->find<json::value>(path.substr(0, dot), json::nulls::as_absent);
    if (!found || !*found)
      return found;
    at = *found;
    path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
  }
  return at;
}

status take_name(const json::value &from, std::string_view path, std::string &out) {
  const auto found = find_at(from, path);
  if (!found)
    return tl::unexpected(found.error());
  if (!*found)
    return {};
  std::string name;
  if ((*found)->type() == json::kind::number) {
    const auto number = (*found)->as<std::int64_t>();
    if (!number)
      return tl::unexpected(number.error());
    name = fmt::format("{}", *number);
  } else {
    auto text = (*found)->as<std::string>();
    if (!text)
      return tl::unexpected(std::move(text).error());
    name = std::move(*text);
  }
  if (name.size() > name_bytes)
    return (*found)->wrong("a name of {} bytes, at most {} are allowed", name.size(), name_bytes);
  if (!name.empty())
    out = std::move(name);
  return {};
}

std::string content_text(const json::value &content) {
  if (content.type() == json::kind::text)
    return *content.as<std::string>();
  std::string out;
  const auto parts = content.items();
  if (!parts)
    return out;
  for (const auto &part : *parts) {
    if (part.type() != json::kind::object)
      continue;
    out.append(out.empty() ? "" : "\n");
    std::string kind = "part";
    std::optional<std::string> text;
    if (take(part, "text", text) && text)
      out += *text;
    else if (take(part, "type", kind))
      out += fmt::format("[{}]", kind);
  }
  return out;
}

std::string reason_text(std::string_view text) {
  constexpr std::size_t most = 500;
  return to_one_line(text.substr(0, most)) + (text.size() > most ? " ..." : "");
}

status check_imported(const node_data &node, std::string_view place) {
  node_view view;
  view.parent = node.parent;
  view.role = node.role;
  view.sampled = node.sampled;
  view.token_ids = node.token_ids;
  view.mask = node.mask;
  view.is_content = node.is_content;
  view.logprobs = node.logprobs;
  const auto span = [](const std::optional<std::vector<float>> &values) {
    return values ? std::optional<std::span<const float>>(*values) : std::nullopt;
  };
  view.advantages = span(node.advantages);
  view.reference_logprobs = span(node.reference_logprobs);
  view.rl_weights = span(node.rl_weights);
  view.ce_weights = span(node.ce_weights);
  view.ref_kl_weights = span(node.ref_kl_weights);
  if (auto checked = check_node(view, 0); !checked)
    return with_context(std::move(checked).error(), place);
  return {};
}

bool covers(std::string_view prefix, std::string_view path) {
  if (path.substr(0, prefix.size()) != prefix)
    return false;
  return path.size() == prefix.size() || path[prefix.size()] == '.' || path[prefix.size()] == '[';
}

} // namespace millrace
