// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/config_change.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "runtime/file.hpp"

namespace millrace {

namespace {

constexpr std::size_t most_listed = 10;
constexpr std::size_t largest_file = std::size_t{16} << 20;

struct setting {
  std::string_view key;
  std::string_view value;
};

/// A line's key ends at the first " = " that is not part of a quoted name.
std::optional<setting> setting_of(std::string_view line) {
  bool quoted = false;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (quoted && line[at] == '\\')
      ++at;
    else if (line[at] == '"')
      quoted = !quoted;
    else if (!quoted && line.substr(at).starts_with(" = "))
      return setting{line.substr(0, at), line.substr(at + 3)};
  }
  return std::nullopt;
}

std::vector<setting> settings_of(std::string_view text) {
  std::vector<setting> out;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    if (const auto one = setting_of(text.substr(0, end)))
      out.push_back(*one);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

/// The name of an environment's key without the environment; keys have no dots in them there but
/// their own, so it follows the name, which is plain or quoted.
std::optional<std::string> default_key_of(std::string_view key) {
  constexpr std::string_view section = "env.";
  if (!key.starts_with(section))
    return std::nullopt;
  auto at = section.size();
  if (at < key.size() && key[at] == '"')
    for (++at; at < key.size() && key[at] != '"'; ++at)
      at += key[at] == '\\' ? std::size_t{1} : std::size_t{0};
  const auto dot = key.find('.', std::min(at, key.size()));
  if (dot == key.npos)
    return std::nullopt;
  return "env_default" + std::string(key.substr(dot));
}

using by_key = std::map<std::string, std::string, std::less<>>;

by_key index_of(const std::vector<setting> &settings) {
  by_key out;
  for (const auto &[key, value] : settings)
    out.emplace(key, value);
  return out;
}

std::string value_of(const by_key &settings, std::string_view key) {
  auto found = settings.find(key);
  if (const auto other = default_key_of(key); found == settings.end() && other)
    found = settings.find(*other);
  return found == settings.end() ? "" : found->second;
}

} // namespace

std::vector<config_change> config_changes(std::string_view before, std::string_view now) {
  const auto old_list = settings_of(before);
  auto list = settings_of(now);
  const auto old_values = index_of(old_list);
  const auto values = index_of(list);
  for (const auto &one : old_list)
    if (!values.contains(one.key))
      list.push_back(one);
  std::vector<config_change> out;
  for (const auto &one : list) {
    auto was = value_of(old_values, one.key);
    auto is = value_of(values, one.key);
    if (was != is)
      out.push_back({std::string(one.key), std::move(was), std::move(is)});
  }
  return out;
}

bool decides_what_is_rejected(std::string_view key) {
  return key == "vocab_size" ||
         (key.starts_with("env") && (key.ends_with(".sampler") || key.ends_with(".algorithm")));
}

bool is_bound_to_log(std::string_view key) {
  // A group in the log has the size that it had; a checkpoint is of one policy. Source, ranks and
  // run are compared with the log itself.
  return key == "trainer.policy" || (key.starts_with("env") && key.ends_with(".group_size"));
}

std::string text_of(const std::vector<config_change> &changes) {
  std::string out;
  for (std::size_t i = 0; i < std::min(changes.size(), most_listed); ++i) {
    const auto &[key, before, now] = changes[i];
    out += fmt::format("{}{} {} -> {}", out.empty() ? "" : ", ", key,
                       before.empty() ? "(none)" : before, now.empty() ? "(none)" : now);
  }
  if (changes.size() > most_listed)
    out += fmt::format(" and {} more", changes.size() - most_listed);
  return out;
}

std::filesystem::path config_file(const std::filesystem::path &state) {
  return state / "config.toml";
}

result<std::string> read_config_file(const std::filesystem::path &state) {
  auto text = read_file(config_file(state), largest_file);
  if (!text && text.error().code == errc::not_found)
    return std::string();
  return text;
}

status write_config_file(const std::filesystem::path &state, std::string_view settings,
                         file_sync sync) {
  const auto there = read_config_file(state);
  if (there && *there == settings)
    return {};
  auto file = output_file::create(config_file(state));
  if (!file)
    return tl::unexpected(std::move(file).error());
  MILLRACE_TRY(file->write(std::as_bytes(std::span(settings.data(), settings.size()))));
  return file->finish(sync);
}

} // namespace millrace
