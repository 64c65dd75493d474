// SPDX-License-Identifier: Apache-2.0
#include "config/keys.hpp"

#include <cmath>
#include <map>
#include <set>

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include "config/convert.hpp"
#include "config/run_config.hpp"
#include "runtime/file.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace millrace;

namespace {

constexpr std::string_view base = "source.preset = \"quickstart\"\nbatch.traces = 8\n";

/// Loads the base config with these settings after it.
auto load(std::vector<std::string> sets) { return load_config_text(base, "t.toml", sets); }

/// The algorithm that reads an environment's key, for those that only one reads.
const std::map<std::string_view, std::string_view> owners{{"episode_agents", "hierarchical_grpo"},
                                                          {"decay", "rae"},
                                                          {"echo.roles", "echo"},
                                                          {"teacher.endpoint", "opd"},
                                                          {"teacher.model", "opsd"},
                                                          {"reference.concurrency", "opd"},
                                                          {"reference.timeout", "opd"},
                                                          {"reference.retries", "opsd"}};

/// What else must be set so that the key may have any value of its range.
std::vector<std::string> companions(std::string_view name, const std::string &value) {
  if (name == "batch.tokens")
    return {value == "0" ? "batch.traces=8" : "batch.traces=0"};
  if (name == "batch.traces" && value == "0")
    return {"batch.tokens=8"};
  if (name == "source.preset")
    return {"source.path=x.mrec"}; // then any will do
  if (name == "source.record" || (name == "source.env" && value == "\"bigram\""))
    return {"source.env=bigram", "source.version=recorded", "vocab_size=16",
            "trainer.policy=bigram", "env.bigram.group_size=4"};
  if (name == "planner.max_staleness")
    return {"source.version=recorded"};
  if (name == "assembler.journal")
    return {"state=run"};
  if (name == "pad_to_multiple_of")
    return {"seq_len=" + value};
  if (name == "curve.directory_key")
    return {"curve.folder=keys"};
  if (name == "cost.linear")
    return {"cost.quadratic=1"};
  if (name == "cost.quadratic")
    return {"seq_len=1"};
  if (name == "cost.model")
    return {"cost.linear=18", "cost.quadratic=2"}; // what the model makes them
  if (name.ends_with("filter.gibberish.action"))
    return {"vocab_size=200000"};
  if (name.ends_with("gate.reject_min") || name.ends_with("gate.reject_max")) {
    const bool is_min = name.ends_with("reject_min");
    const std::string other(name.substr(0, name.size() - 3));
    const std::string bound = value == "\"off\"" ? "off" : is_min ? "1e9" : "-1e9";
    return {other + (is_min ? "max=" : "min=") + bound};
  }
  for (const auto &[key, owner] : owners)
    if (name.ends_with(key)) {
      const std::string section(name.substr(0, name.size() - key.size()));
      std::vector<std::string> out{fmt::format("{}algorithm={}", section, owner)};
      if (key == "teacher.model" || key.starts_with("reference."))
        out.push_back(section + "teacher.endpoint=http://t:1");
      return out;
    }
  return {};
}

/// Values over the range of a type, as TOML, in the form in which they are printed.
struct samples {
  std::vector<std::string> operator()(const boolean_type &) const { return {"true", "false"}; }
  std::vector<std::string> operator()(const integer_type &type) const {
    std::vector<std::string> out{std::to_string(type.min),
                                 std::to_string(type.min + (type.max - type.min) / 3),
                                 std::to_string(type.max)};
    if (type.optional)
      out.emplace_back("\"off\"");
    return out;
  }
  std::vector<std::string> operator()(const number_type &type) const {
    std::vector<std::string> out{toml_text(type.min), toml_text((type.min + type.max) / 3),
                                 toml_text(type.max)};
    if (type.optional)
      out.emplace_back("\"off\"");
    return out;
  }
  std::vector<std::string> operator()(const text_type &) const {
    return {"\"grpo\"", "\"none\""}; // names of algorithms, which as text are as good as any
  }
  std::vector<std::string> operator()(const text_list_type &) const {
    return {"[]", "[\"a\"]", "[\"b\", \"a b\"]"};
  }
  std::vector<std::string> operator()(const number_table_type &type) const {
    return {fmt::format("{{ \"tool\" = {} }}", type.max),
            fmt::format("{{ \"a.b\" = {}, \"tool\" = 0.5 }}", type.min)};
  }
  std::vector<std::string> operator()(const choice_type &type) const {
    std::vector<std::string> out;
    for (const std::string_view name : type.names)
      out.push_back(toml_quoted(name));
    return out;
  }
};

/// Values of a wrong type, and values just outside the range.
struct wrong_samples {
  std::vector<std::string> operator()(const boolean_type &) const { return {"1", "yes"}; }
  std::vector<std::string> operator()(const integer_type &type) const {
    std::vector<std::string> out{
        "two", "1.5", "true", "[1]", "{a=1}", "1979-05-27", std::to_string(type.min - 1)};
    if (type.max != INT64_MAX)
      out.push_back(std::to_string(type.max + 1));
    return out;
  }
  std::vector<std::string> operator()(const number_type &type) const {
    return {"two",
            "true",
            "nan",
            "inf",
            toml_text(std::nextafter(type.min, -HUGE_VAL)),
            toml_text(std::nextafter(type.max, HUGE_VAL))};
  }
  std::vector<std::string> operator()(const text_type &type) const {
    return {"\"a\\nb\"", std::string(type.max + 1, 'x')};
  }
  std::vector<std::string> operator()(const choice_type &) const { return {"1", "nonsense"}; }
  std::vector<std::string> operator()(const text_list_type &type) const {
    return {"1",
            "one",
            "[1]",
            "[\"a\", 1]",
            "[\"\"]",
            "[\"a\\nb\"]",
            fmt::format("[\"{}\"]", std::string(type.longest + 1, 'x'))};
  }
  std::vector<std::string> operator()(const number_table_type &type) const {
    return {"1",
            "[\"tool\"]",
            "{ tool = \"x\" }",
            "{ tool = nan }",
            fmt::format("{{ tool = {} }}", toml_text(std::nextafter(type.min, -HUGE_VAL))),
            fmt::format("{{ tool = {} }}", toml_text(std::nextafter(type.max, HUGE_VAL))),
            "{ \"\" = 1 }",
            "{ tool = { x = 1 } }",
            "{ tool = {} }"};
  }
};

/// Text that is more than text: endpoints, a key, a name.
const std::map<std::string, std::vector<std::string>> text_samples{
    {"directory.endpoint", {"\"tcp://node-1:7\"", "\"ipc://d.sock\""}},
    {"link.bind", {"\"tcp://0.0.0.0:*\"", "\"tcp://[::1]:7\""}},
    {"curve.directory_key", {"\"\"", "\"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7\""}},
    {"source.version", {"\"fresh\"", "\"recorded\"", "\"offset -3\""}},
    {"env.math.teacher.endpoint", {"\"http://10.0.0.7:8000\"", "\"http://t/v1\""}},
    {"env_default.teacher.endpoint", {"\"http://[::1]:8000\"", "\"http://t\""}},
    {"trainer.policy", {"\"replay\""}}};

/// Two files of one small model, as TOML.
const std::vector<std::string> &model_samples() {
  static const test::temporary_folder folder;
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (auto name : {"a.json", "b.json"}) {
      const auto written = write_file_atomically(
          folder / name, R"({"hidden_size": 1, "num_hidden_layers": 1, "num_attention_heads": 1,
                             "intermediate_size": 1, "vocab_size": 1})");
      BOOST_REQUIRE_MESSAGE(written, written.error().message);
      out.push_back(toml_quoted((folder / name).string()));
    }
    return out;
  }();
  return names;
}

struct full_key {
  std::string name;
  key_type type;
};

std::vector<full_key> all_keys() {
  std::vector<full_key> out;
  for (const auto &key : run_keys())
    out.push_back({std::string(key.name), key.type});
  for (const auto &key : env_keys()) {
    out.push_back({"env.math." + std::string(key.name), key.type});
    out.push_back({"env_default." + std::string(key.name), key.type});
  }
  return out;
}

std::vector<std::string> samples_of(const full_key &key) {
  if (key.name == "cost.model")
    return model_samples();
  const auto found = text_samples.find(key.name);
  return found == text_samples.end() ? std::visit(samples{}, key.type) : found->second;
}

std::string first_error(const tl::expected<run_config, std::vector<error>> &loaded) {
  return loaded ? "" : loaded.error().at(0).message;
}

} // namespace

BOOST_AUTO_TEST_SUITE(keys)

BOOST_AUTO_TEST_CASE(no_key_stands_in_the_table_twice) {
  std::set<std::string> seen;
  for (const full_key &key : all_keys())
    BOOST_TEST(seen.insert(key.name).second, key.name);
}

BOOST_AUTO_TEST_CASE(every_key_can_be_set_over_its_range_and_read_back) {
  for (const full_key &key : all_keys()) {
    for (const std::string &value : samples_of(key)) {
      auto sets = companions(key.name, value);
      sets.push_back(key.name + "=" + value);
      const auto loaded = load(sets);
      BOOST_TEST_REQUIRE(loaded.has_value(), key.name << ": " << first_error(loaded));
      std::string printed = key.name;
      if (printed.starts_with("env."))
        printed.replace(0, 9, "env.\"math\".");
      BOOST_TEST(to_toml(*loaded).find(printed + " = " + value + "\n") != std::string::npos,
                 printed << " = " << value << " is not in\n"
                         << to_toml(*loaded));
    }
  }
}

BOOST_AUTO_TEST_CASE(every_key_refuses_wrong_types_and_values_outside_its_range) {
  for (const full_key &key : all_keys()) {
    for (const std::string &value : std::visit(wrong_samples{}, key.type)) {
      const auto loaded = load({key.name + "=" + value});
      BOOST_TEST_REQUIRE(!loaded.has_value(), key.name << "=" << value << " is accepted");
      BOOST_TEST(loaded.error().size() == 1U, key.name);
      const std::string message = first_error(loaded);
      const bool inline_table = value.starts_with("{");
      BOOST_TEST(message.find(key.name) != std::string::npos, message);
      BOOST_TEST((inline_table || message.starts_with(key.name + " in --set: ")), message);
      BOOST_TEST(message.find('\n') == std::string::npos, message);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_printed_loads_as_the_same_config) {
  for (const full_key &key : all_keys()) {
    const std::string value = samples_of(key).back();
    auto sets = companions(key.name, value);
    sets.push_back(key.name + "=" + value);
    const auto loaded = load(sets);
    BOOST_TEST_REQUIRE(loaded.has_value(), first_error(loaded));
    const auto again = load_config_text(to_toml(*loaded), "other.toml", {});
    BOOST_TEST_REQUIRE(again.has_value(), first_error(again));
    BOOST_TEST(to_toml(*again) == to_toml(*loaded));
    BOOST_TEST(config_digest(*again).hex() == config_digest(*loaded).hex());
  }
}

BOOST_AUTO_TEST_CASE(processes_agree_on_every_key_but_those_of_their_own_host_and_size) {
  const std::set<std::string> own{"state",
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
  for (const full_key &key : all_keys()) {
    std::set<std::string> digests;
    for (const std::string &value : samples_of(key)) {
      auto sets = companions(key.name, value);
      sets.push_back(key.name + "=" + value);
      digests.insert(shared_config_digest(load(sets).value()).hex());
    }
    const bool shared = !own.contains(key.name);
    const bool one_value = key.name == "trainer.policy";
    BOOST_TEST((digests.size() > 1) == (shared && !one_value), key.name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
