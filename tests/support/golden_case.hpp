// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <boost/test/unit_test.hpp>

#include "actors/conform/cases.hpp"

namespace millrace::test {

using case_runner = case_outcome (*)(const json::value &test);

inline const std::filesystem::path golden_folder =
    std::filesystem::path(MILLRACE_SOURCE_DIR) / "tests/golden";

inline std::string text_of_file(const std::filesystem::path &path) {
  std::ifstream in(path);
  BOOST_REQUIRE_MESSAGE(in, path << " cannot be read");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline case_outcome run_text(case_runner run, std::string_view text) {
  json::document document;
  const auto root = document.parse(text);
  BOOST_REQUIRE_MESSAGE(root, root.error().message);
  return run(*root);
}

/// A golden case with the last occurrence of one piece of its text replaced.
inline case_outcome run_changed(case_runner run, std::string_view file, std::string_view from,
                                std::string_view to) {
  auto text = text_of_file(golden_folder / file);
  const auto at = text.rfind(from);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, from << " is not in " << file);
  return run_text(run, text.replace(at, from.size(), to));
}

} // namespace millrace::test
