// SPDX-License-Identifier: Apache-2.0
#include "actors/conform/conform.hpp"

#include <unistd.h>

#include "tests/support/golden_case.hpp"

namespace millrace::test {
namespace {

/// A folder of its own, gone with the test.
struct scratch {
  std::filesystem::path dir =
      std::filesystem::temp_directory_path() / ("millrace_conform_" + std::to_string(::getpid()));
  std::ostringstream out;

  scratch() { std::filesystem::create_directories(dir / "partition"); }
  ~scratch() { std::filesystem::remove_all(dir); }
  scratch(const scratch &) = delete;
  scratch &operator=(const scratch &) = delete;

  void write(const std::filesystem::path &file, std::string_view text) const {
    std::filesystem::create_directories((dir / file).parent_path());
    std::ofstream(dir / file) << text;
  }
  conform_summary run() {
    const auto sum = conform(dir, out);
    BOOST_REQUIRE_MESSAGE(sum, sum.error().message);
    return *sum;
  }
};

constexpr std::string_view good = R"({"entries":[{"weights":[1,2],"num_partitions":2,
  "after_differencing":[[1],[0]],"expected":[[1],[0]]}]})";
constexpr std::string_view bad = R"({"entries":[{"weights":[1,2],"num_partitions":2,
  "after_differencing":[[1],[0]],"expected":[[0],[1]]}]})";

BOOST_AUTO_TEST_SUITE(conform_suite)

BOOST_FIXTURE_TEST_CASE(the_last_line_counts_passed_and_failed, scratch) {
  write("partition/a.json", good);
  write("partition/b.json", bad);
  write("partition/notes.txt", "no case");
  const auto sum = run();
  BOOST_TEST(sum.passed == 1U);
  BOOST_TEST(sum.failed == 1U);
  BOOST_TEST(out.str() ==
             "FAILED partition/b: entries[0].expected[0][0]: 1, expected 0\n1 passed, 1 failed\n");
}

BOOST_FIXTURE_TEST_CASE(a_file_that_is_not_json_fails_and_the_rest_runs, scratch) {
  write("partition/a.json", "{");
  write("partition/b.json", good);
  const auto sum = run();
  BOOST_TEST(sum.passed == 1U);
  BOOST_TEST(sum.failed == 1U);
}

BOOST_FIXTURE_TEST_CASE(a_folder_without_cases_is_an_error, scratch) {
  const auto sum = conform(dir, out);
  BOOST_TEST_REQUIRE(!sum.has_value());
  BOOST_TEST((sum.error().code == errc::not_found));
  BOOST_TEST(out.str().empty());
}

BOOST_FIXTURE_TEST_CASE(no_folder_is_an_error, scratch) {
  BOOST_TEST(!conform(dir / "nowhere", out).has_value());
  write("file", "x");
  BOOST_TEST(!conform(dir / "file", out).has_value());
}

BOOST_AUTO_TEST_CASE(a_weight_that_is_not_divided_fails) {
  const auto outcome = run_text(run_partition_case, R"({"entries":[{"weights":[1,2],
    "num_partitions":0,"after_differencing":[],"expected":[]}]})");
  BOOST_TEST((outcome.verdict == case_outcome::kind::failed));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
