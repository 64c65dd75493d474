// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/plugin_policy.hpp"

#include <chrono>
#include <cmath>
#include <fstream>

#include <boost/test/unit_test.hpp>

#include "runtime/collective/local.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/actors/trainer/some_batch.hpp"

namespace millrace::test {
namespace {

struct plugin_fixture {
  std::vector<std::unique_ptr<collective>> ranks =
      make_local_collective(1, std::chrono::seconds(10));
  micro_batch_tensors tensors = some_tensors({{0, 1, 1}, {2, 1}});

  static std::unique_ptr<policy> loaded(const std::string &options = "4 0.5") {
    auto made = load_policy({MILLRACE_EXAMPLE_POLICY, options, 0, 1});
    BOOST_REQUIRE_MESSAGE(made, made.error().message);
    return std::move(*made);
  }
  std::vector<float> logprobs(policy &of) const {
    std::vector<float> out(tensors.tokens()), entropy(tensors.tokens());
    BOOST_REQUIRE(of.forward(batch_of(tensors), out, entropy));
    return out;
  }
  void train(policy &what, std::uint64_t step) {
    BOOST_REQUIRE(what.backward(batch_of(tensors), std::vector<float>(tensors.tokens(), -1)));
    BOOST_REQUIRE(what.step({step, {}, {}, *ranks[0]}));
  }
  static error refusal(const std::filesystem::path &library, const std::string &options = "4 1") {
    const auto made = load_policy({library, options, 0, 1});
    BOOST_TEST_REQUIRE(!made.has_value());
    BOOST_TEST(made.error().message.find(library.string()) != std::string::npos);
    return made.error();
  }
};

BOOST_FIXTURE_TEST_SUITE(policies_in_libraries, plugin_fixture)

BOOST_AUTO_TEST_CASE(one_is_loaded_by_its_path_and_learns) {
  const auto policy = loaded();
  BOOST_TEST(policy->learns());
  const auto before = logprobs(*policy);
  BOOST_TEST(before[0] == 0);
  BOOST_TEST(before[1] == std::log(0.25F), boost::test_tools::tolerance(1e-6F));
  train(*policy, 1);
  BOOST_TEST(logprobs(*policy)[1] > before[1]);
}

BOOST_AUTO_TEST_CASE(its_gradients_are_added_up_over_the_ranks) {
  auto two = make_local_collective(2, std::chrono::seconds(10));
  const auto all = on_all_ranks(two, [&](collective &rank) {
    auto made =
        load_policy({MILLRACE_EXAMPLE_POLICY, "4 0.5", static_cast<std::uint32_t>(rank.rank()), 2});
    const auto mine = rank.rank() == 0 ? some_tensors({{0, 1, 1}}) : some_tensors({{2, 1}});
    const bool done = (*made)->backward(batch_of(mine), std::vector<float>(mine.tokens(), -1)) &&
                      (*made)->step({1, {}, {}, rank});
    std::vector<float> out(tensors.tokens()), entropy(tensors.tokens());
    return done && (*made)->forward(batch_of(tensors), out, entropy) ? out : std::vector<float>();
  });
  const auto alone = loaded();
  train(*alone, 1);
  BOOST_TEST(all[0] == logprobs(*alone), boost::test_tools::per_element());
  BOOST_TEST(all[1] == logprobs(*alone), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_it_saved_it_loads_again) {
  const temporary_folder folder;
  const auto one = loaded();
  train(*one, 1);
  BOOST_REQUIRE(one->save(folder.path(), 1));
  const auto other = loaded();
  BOOST_TEST(other->load(folder.path()).value() == 1U);
  BOOST_TEST(logprobs(*other) == logprobs(*one), boost::test_tools::per_element());
  other->reset();
  BOOST_TEST(logprobs(*other) == logprobs(*loaded()), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(its_own_reason_is_told_with_its_name_and_the_call) {
  tensors = some_tensors({{0, 4}});
  const auto policy = loaded();
  std::vector<float> out(tensors.tokens()), entropy(tensors.tokens());
  const auto done = policy->forward(batch_of(tensors), out, entropy);
  BOOST_REQUIRE(!done);
  const auto &why = done.error().message;
  BOOST_TEST(why.find(std::filesystem::path(MILLRACE_EXAMPLE_POLICY).filename().string()) !=
                 std::string::npos,
             why);
  BOOST_TEST(why.find("forward: a token id is not in the vocabulary") != std::string::npos, why);
}

BOOST_AUTO_TEST_CASE(a_lost_rank_is_told_as_that_and_not_as_the_librarys_failure) {
  auto two = make_local_collective(2, std::chrono::milliseconds(200));
  auto made = load_policy({MILLRACE_EXAMPLE_POLICY, "4 0.5", 0, 2});
  const auto done = (*made)->step({1, {}, {}, *two[0]}); // the other one does not come
  BOOST_REQUIRE(!done);
  BOOST_TEST((done.error().code == errc::timed_out));
}

BOOST_AUTO_TEST_CASE(what_is_no_such_library_is_refused_by_name) {
  const temporary_folder folder;
  BOOST_TEST((refusal(folder / "none.so").code == errc::not_found));
  std::ofstream(folder / "text.so") << "no library";
  BOOST_TEST((refusal(folder / "text.so").code == errc::bad_config));
  const auto other = refusal(MILLRACE_OTHER_LIBRARY);
  BOOST_TEST(other.message.find("exports no function millrace_policy") != std::string::npos);
  const auto options = refusal(MILLRACE_EXAMPLE_POLICY, "many");
  BOOST_TEST(options.message.find("\"VOCAB_SIZE LEARNING_RATE\" is wanted") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
