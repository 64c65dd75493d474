// SPDX-License-Identifier: Apache-2.0
#include "config/run_config.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "actors/planner/flops_cost.hpp"
#include "config/assignments.hpp"
#include "config/convert.hpp"
#include "config/keys.hpp"
#include "runtime/file.hpp"
#include "runtime/nearest.hpp"

namespace millrace {
namespace {

constexpr std::size_t largest_file = std::size_t{1} << 20;
constexpr std::string_view env_section = "env";
constexpr std::string_view env_default_section = "env_default";

/// Keys that may differ between the processes of a run: what a host has, how it is reached, and how
/// many of a stage are there, which changes while the run goes on. The costs that a model's config
/// gives are shared, wherever it lies.
constexpr std::array<std::string_view, 16> own_keys{"state",
                                                    "source.path",
                                                    "cost.model",
                                                    "source.record",
                                                    "trainer.metrics",
                                                    "assembler.instances",
                                                    "scorer.instances",
                                                    "packer.instances",
                                                    "runtime.workers",
                                                    "memory.limit",
                                                    "directory.endpoint",
                                                    "link.bind",
                                                    "link.advertise",
                                                    "insecure",
                                                    "curve.folder",
                                                    "curve.directory_key"};

/// A choice by its name, all other values as they are.
template <class Root> key_value named_value(const key<Root> &key, const Root &root) {
  key_value value = key.get(root);
  const auto *choice = std::get_if<choice_type>(&key.type);
  if (choice == nullptr)
    return value;
  return std::string(choice->names[static_cast<std::size_t>(std::get<std::int64_t>(value))]);
}

template <class Root> void set_named_value(const key<Root> &key, Root &root, key_value value) {
  if (auto *entries = std::get_if<std::map<std::string, double>>(&value)) // others stay
    entries->merge(std::get<std::map<std::string, double>>(key.get(root)));
  if (const auto *choice = std::get_if<choice_type>(&key.type)) {
    const auto place =
        std::find(choice->names.begin(), choice->names.end(), std::get<std::string>(value));
    value = std::int64_t{place - choice->names.begin()};
  }
  key.set(root, value);
}

template <class Root>
const key<Root> *find_key(std::span<const key<Root>> keys, std::string_view name) {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [name](const auto &key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

/// Whether `name` is a section: some key starts with it and a dot.
template <class Root> bool is_section(std::span<const key<Root>> keys, std::string_view name) {
  return std::any_of(keys.begin(), keys.end(), [name](const auto &key) {
    return key.name.size() > name.size() && key.name.starts_with(name) &&
           key.name[name.size()] == '.';
  });
}

std::string join(std::span<const std::string> path) {
  std::string out;
  for (const std::string &part : path)
    out += (out.empty() ? "" : ".") + part;
  return out;
}

/// The table of numbers that the last part of `path` names an entry of; null if there is none.
template <class Root>
const key<Root> *find_table(std::span<const key<Root>> keys, std::span<const std::string> path) {
  if (path.empty())
    return nullptr;
  const key<Root> *found = find_key(keys, join(path.first(path.size() - 1)));
  return found != nullptr && std::holds_alternative<number_table_type>(found->type) ? found
                                                                                    : nullptr;
}

bool is_empty_table(const assignment &from) {
  return std::holds_alternative<foreign_value>(from.value) &&
         std::get<foreign_value>(from.value).type == table_type;
}

/// Applies assignments to a config and collects what is wrong with them.
class loader {
public:
  explicit loader(run_config defaults) : config_(std::move(defaults)) {}

  void apply(const std::vector<assignment> &assignments) {
    // Environments start from env_default, wherever that stands.
    for (const assignment &each : assignments)
      if (each.path.front() != env_section)
        apply_run(each);
    for (const assignment &each : assignments)
      if (each.path.front() == env_section)
        apply_env(each);
  }

  /// @param file_was_read false: the rules would only speak of keys that nobody has seen.
  tl::expected<run_config, std::vector<error>> finish(std::string_view file, bool file_was_read) {
    read_cost_model();
    for (const error &broken : file_was_read ? config_.validate() : std::vector<error>())
      if (!names_a_refused_key(broken.message))
        errors_.push_back({broken.code, fmt::format("{}: {}", file, broken.message)});
    if (!errors_.empty())
      return tl::unexpected(std::move(errors_));
    return std::move(config_);
  }

  void add(error why) { errors_.push_back(std::move(why)); }

private:
  void apply_run(const assignment &from) {
    if (from.path.front() == env_default_section)
      apply_to(from, env_keys(), std::span(from.path).subspan(1), config_.env_default);
    else
      apply_to(from, run_keys(), from.path, config_);
  }

  void apply_env(const assignment &from) {
    if (from.path.size() < 2) {
      if (!is_empty_table(from))
        refuse(from,
               fmt::format("{}, a table for each environment is wanted", describe(from.value)));
      return;
    }
    const std::string &name = from.path[1];
    if (name.empty() || name == "all" || printable(name) != name) {
      refuse(from, fmt::format("'{}' cannot name an environment", printable(name)));
      return;
    }
    env_config &env = config_.envs.try_emplace(name, config_.env_default).first->second;
    apply_to(from, env_keys(), std::span(from.path).subspan(2), env);
  }

  template <class Root>
  void apply_to(const assignment &from, std::span<const key<Root>> keys,
                std::span<const std::string> path, Root &root) {
    const std::string name = join(path);
    const key<Root> *key = find_key(keys, name);
    if (key == nullptr) {
      key = find_table(keys, path);
      if (key != nullptr && is_empty_table(from))
        return refuse(from, fmt::format("{}, a number is wanted", describe(from.value)));
    } else if (std::holds_alternative<number_table_type>(key->type) && !is_empty_table(from))
      return refuse(from, fmt::format("{}, a table is wanted", describe(from.value)));
    if (key == nullptr && (name.empty() || is_section(keys, name))) {
      if (!is_empty_table(from))
        refuse(from, fmt::format("{}, a table is wanted", describe(from.value)));
      return;
    }
    if (key == nullptr)
      return unknown(from, keys, name);
    auto value = convert(from, key->type);
    if (!value)
      return refuse(from, value.error().message);
    set_named_value(*key, root, *std::move(value));
    places_[from.name()] = from.place;
  }

  template <class Root>
  void unknown(const assignment &from, std::span<const key<Root>> keys, const std::string &name) {
    std::vector<std::string_view> names;
    for (const auto &key : keys)
      names.push_back(key.name);
    const std::string full = from.name();
    const auto guess = nearest(name, names);
    const std::string section = full.substr(0, full.size() - name.size());
    errors_.push_back(
        {errc::bad_config,
         fmt::format("unknown key '{}' in {}{}", printable(full), from.place,
                     guess ? fmt::format("; did you mean '{}{}'?", printable(section), *guess)
                           : "; docs/config.md lists all keys")});
  }

  /// Costs in FLOPs from a model's config. A cost that is set as well must be that one, so that a
  /// printed config loads as the same.
  void read_cost_model() {
    if (config_.plan.cost_model.empty())
      return;
    const auto made = read_flops_cost(config_.plan.cost_model);
    if (!made) {
      errors_.push_back({errc::bad_config, fmt::format("cost.model: {}", made.error().message)});
      return;
    }
    take_cost("cost.linear", config_.plan.cost.linear, made->linear);
    take_cost("cost.quadratic", config_.plan.cost.quadratic, made->quadratic);
  }

  void take_cost(const std::string &name, std::int64_t &cost, std::int64_t made) {
    if (const auto found = places_.find(name); found != places_.end() && cost != made)
      errors_.push_back(
          {errc::bad_config, fmt::format("{} in {}: {}, and cost.model makes it {}: leave one out",
                                         name, found->second, cost, made)});
    cost = made;
  }

  void refuse(const assignment &from, std::string_view why) {
    const std::string name = printable(from.name());
    errors_.push_back({errc::bad_config, fmt::format("{} in {}: {}", name, from.place, why)});
    refused_.insert(name);
  }

  // A key that was refused kept its default: what follows from that would only mislead.
  bool names_a_refused_key(std::string_view message) const {
    return std::any_of(refused_.begin(), refused_.end(), [message](const std::string &name) {
      return message.find(name) != std::string_view::npos;
    });
  }

  run_config config_;
  std::vector<error> errors_;
  std::set<std::string> refused_;
  std::map<std::string, std::string> places_; ///< of the keys that were set: the last
};

template <class Root>
void write_keys(std::string &out, std::span<const key<Root>> keys, std::string_view prefix,
                const Root &root) {
  for (const auto &key : keys)
    out += fmt::format("{}{} = {}\n", prefix, key.name, toml_text(named_value(key, root)));
}

digest128 digest_of(std::string_view text) {
  digest_writer digest;
  digest.add(std::as_bytes(std::span(text)));
  return digest.finish();
}

} // namespace

tl::expected<run_config, std::vector<error>> load_config_text(std::string_view text,
                                                              const std::filesystem::path &file,
                                                              std::span<const std::string> sets) {
  run_config defaults;
  defaults.id = file.stem().string();
  loader load(std::move(defaults));
  std::vector<assignment> all;
  const auto take = [&](result<std::vector<assignment>> part) {
    if (part)
      all.insert(all.end(), part->begin(), part->end());
    else
      load.add(std::move(part).error());
  };
  auto written = parse_toml(text, file.string());
  const bool file_was_read = written.has_value();
  take(std::move(written));
  for (const std::string &set : sets)
    take(parse_set(set));
  load.apply(all);
  return load.finish(file.string(), file_was_read);
}

tl::expected<run_config, std::vector<error>> load_config(const std::filesystem::path &file,
                                                         std::span<const std::string> sets) {
  auto text = read_file(file, largest_file);
  if (!text)
    return tl::unexpected(std::vector{std::move(text).error()});
  return load_config_text(*text, file, sets);
}

std::string to_toml(const run_config &config) {
  std::string out;
  write_keys(out, run_keys(), "", config);
  write_keys(out, env_keys(), "env_default.", config.env_default);
  for (const auto &[name, env] : config.envs)
    write_keys(out, env_keys(), fmt::format("env.{}.", toml_quoted(name)), env);
  return out;
}

digest128 config_digest(const run_config &config) { return digest_of(to_toml(config)); }

std::string shared_toml(const run_config &config) {
  run_config shared = config;
  const run_config defaults;
  for (const auto &key : run_keys())
    if (std::find(own_keys.begin(), own_keys.end(), key.name) != own_keys.end())
      key.set(shared, key.get(defaults));
  return to_toml(shared);
}

digest128 shared_config_digest(const run_config &config) { return digest_of(shared_toml(config)); }

} // namespace millrace
