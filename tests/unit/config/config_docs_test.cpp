// SPDX-License-Identifier: Apache-2.0
// docs/config.md holds the tables of keys that config/keys.cpp gives; this keeps them in step.
#include <fstream>
#include <iterator>

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include "config/convert.hpp"
#include "config/keys.hpp"
#include "config/run_config.hpp"

using namespace millrace;

namespace {

template <class Root>
std::string table_of(std::span<const key<Root>> keys, const std::string &printed_defaults,
                     const std::string &prefix) {
  std::string out =
      "| key | wanted | unit | default | meaning |\n| --- | --- | --- | --- | --- |\n";
  for (const auto &key : keys) {
    const std::string start = fmt::format("\n{}{} = ", prefix, key.name);
    const std::size_t at = printed_defaults.find(start) + start.size();
    const std::string value = printed_defaults.substr(at, printed_defaults.find('\n', at) - at);
    out += fmt::format("| `{}` | {} | {} | `{}` | {} |\n", key.name, range_text(key.type), key.unit,
                       value, key.meaning);
  }
  return out;
}

std::string read(const char *path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace

BOOST_AUTO_TEST_SUITE(config_docs)

BOOST_AUTO_TEST_CASE(the_document_lists_every_key_as_the_table_has_it) {
  const std::string document = read(MILLRACE_SOURCE_DIR "/docs/config.md");
  const std::string defaults = fmt::format("\n{}", to_toml(run_config()));
  for (const std::string &table :
       {table_of(run_keys(), defaults, ""), table_of(env_keys(), defaults, "env_default.")})
    BOOST_TEST(document.find(table) != std::string::npos,
               "docs/config.md is out of step; its table should be\n"
                   << table);
}

BOOST_AUTO_TEST_SUITE_END()
