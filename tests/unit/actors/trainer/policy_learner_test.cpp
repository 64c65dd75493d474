// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/policy_learner.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>

#include <boost/test/unit_test.hpp>

#include "actors/packer/gather.hpp"
#include "actors/trainer/bigram_policy.hpp"
#include "actors/trainer/replay_policy.hpp"
#include "runtime/collective/local.hpp"
#include "runtime/file.hpp"
#include "runtime/json.hpp"
#include "tests/support/quiet_log.hpp"
#include "tests/support/random_bins.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/temporary_folder.hpp"

namespace millrace::test {
namespace {

namespace fs = std::filesystem;

/// What a learner does with its policy.
struct calls {
  std::vector<std::string> made;
  float logprob = -1; ///< that it gives every token
  std::vector<float> gradient;
};

class noting_policy final : public policy {
public:
  explicit noting_policy(calls &log) : log_(log) {}
  status forward(const policy_batch &in, std::span<float> logprobs,
                 std::span<float> entropy) override {
    log_.made.push_back(fmt::format("forward {}", in.tensors.index));
    std::ranges::fill(logprobs, log_.logprob);
    std::ranges::fill(entropy, 0.5F);
    return {};
  }
  status backward(const policy_batch &in, std::span<const float> gradient) override {
    log_.made.push_back(fmt::format("backward {}", in.tensors.index));
    log_.gradient.assign(gradient.begin(), gradient.end());
    return {};
  }
  status step(const policy_update &in) override {
    log_.made.push_back(fmt::format("step {}", in.step));
    return {};
  }
  status save(const fs::path &folder, std::uint64_t step) override {
    std::ofstream(folder / "step") << step;
    return {};
  }
  result<std::uint64_t> load(const fs::path &folder) override {
    std::uint64_t step = 0;
    std::ifstream(folder / "step") >> step;
    return step;
  }
  void reset() override { log_.made.emplace_back("reset"); }

private:
  calls &log_;
};

struct learner_fixture {
  temporary_folder folder;
  std::vector<std::unique_ptr<collective>> ranks =
      make_local_collective(1, std::chrono::seconds(10));
  calls log;
  std::shared_ptr<run_counters> counters = std::make_shared<run_counters>();
  policy_learner_options options{.run = "r", .metrics = folder / "metrics.jsonl"};
  std::vector<micro_batch> batches;

  learner_fixture() { batches = {made(1, 0), made(2, 1)}; }

  static micro_batch made(std::uint64_t seed, std::uint32_t index) {
    made_bin bin;
    bin_maker(seed).fill(bin);
    bin.plan.step = 1;
    bin.plan.rank = 0;
    bin.plan.index = index;
    bin.plan.dummy = false;
    return micro_batch::parse(*gather(bin.plan)).value();
  }
  static component_totals totals_of(std::span<const micro_batch> of) {
    component_totals out;
    micro_batch_tensors tensors;
    for (const auto &batch : of) {
      widen(batch, tensors);
      out += count_components(tensors);
    }
    return out;
  }
  policy_learner learner() { return {options, std::make_unique<noting_policy>(log), counters}; }
  learner_step step_of(std::uint64_t step = 1) {
    return {step, {}, totals_of(batches), {}, batches, *ranks[0]};
  }
  std::string metrics() const { return read_file(folder / "metrics.jsonl", 1 << 20).value(); }
};

BOOST_FIXTURE_TEST_SUITE(learners_of_policies, learner_fixture)

BOOST_AUTO_TEST_CASE(every_micro_batch_goes_forward_and_back_and_one_step_follows) {
  auto subject = learner();
  const auto done = subject.step(step_of());
  BOOST_REQUIRE_MESSAGE(done, done.error().message);
  BOOST_TEST(log.made == (std::vector<std::string>{"forward 0", "backward 0", "forward 1",
                                                   "backward 1", "step 1"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_policy_that_does_not_learn_is_only_told_of_the_step) {
  auto inner = std::make_unique<replay_policy>();
  auto &replay = *inner;
  policy_learner subject(options, std::move(inner), counters);
  BOOST_REQUIRE(subject.step(step_of()));
  BOOST_TEST(replay.steps() == 1U);
  BOOST_TEST(counters->stages.tensors.bytes > 0U);
  json::document document;
  const auto all = document.parse(metrics()).value().get<json::value>("all").value();
  BOOST_TEST(!all.find<double>("loss", json::nulls::as_absent).value().has_value());
}

// What the losses give for the same columns, so that the policy gets that and nothing else.
BOOST_AUTO_TEST_CASE(the_gradient_is_that_of_the_losses_over_the_totals_of_all_ranks) {
  batches.erase(batches.begin() + 1, batches.end());
  auto subject = learner();
  auto step = step_of();
  step.totals = {step.totals.rl * 3, step.totals.ce * 3, step.totals.ref_kl * 3};
  BOOST_REQUIRE(subject.step(step));
  micro_batch_tensors tensors;
  widen(batches[0], tensors);
  const auto nullable = [](const host_array<float> &array) {
    return array.has_value() ? std::optional(array.values()) : std::nullopt;
  };
  const loss_columns columns{tensors.sequence_lengths.values(), tensors.loss_mask.values(),
                             tensors.advantages.values(),       tensors.inference_logprobs.values(),
                             nullable(tensors.ref_logprobs),    nullable(tensors.rl_weights),
                             nullable(tensors.ce_weights),      nullable(tensors.ref_kl_weights)};
  const std::vector<float> logprobs(tensors.tokens(), -1);
  const auto want = compute_loss<float>(columns, logprobs, {},
                                        {static_cast<std::uint64_t>(step.totals.rl),
                                         static_cast<std::uint64_t>(step.totals.ce),
                                         static_cast<std::uint64_t>(step.totals.ref_kl)});
  BOOST_TEST(log.gradient == want->grad_trainer_logprobs, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_line_of_metrics_follows_each_step) {
  auto subject = learner();
  BOOST_REQUIRE(subject.begin(4));
  BOOST_REQUIRE(subject.step(step_of(1)));
  BOOST_REQUIRE(subject.step(step_of(2)));
  const auto text = metrics();
  BOOST_TEST(std::ranges::count(text, '\n') == 2);
  json::document document;
  const auto root = document.parse(text.substr(0, text.find('\n'))).value();
  BOOST_TEST(root.get<std::uint64_t>("generation").value() == 4U);
  BOOST_TEST(root.get<std::uint64_t>("micro_batches").value() == 2U);
  BOOST_TEST(root.get<json::value>("all").value().get<double>("entropy").value() == 0.5);
  std::uint64_t tokens = 0;
  for (const auto &batch : batches)
    tokens += batch.tokens() + batch.padding();
  BOOST_TEST(root.get<std::uint64_t>("tokens_with_padding").value() == tokens);
}

BOOST_AUTO_TEST_CASE(what_is_not_finite_is_reported_with_its_place_and_the_step_goes_on) {
  quiet_log quiet;
  log.logprob = std::numeric_limits<float>::infinity();
  auto subject = learner();
  BOOST_REQUIRE(subject.step(step_of()));
  json::document document;
  const auto list =
      document.parse(metrics()).value().get<json::value>("non_finite").value().items().value();
  BOOST_TEST(!list.empty());
  BOOST_TEST(metrics().find("inf") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_line_that_cannot_be_written_ends_nothing) {
  quiet_log quiet;
  options.metrics = folder / "no folder/metrics.jsonl";
  BOOST_TEST(learner().step(step_of()).has_value());
}

BOOST_AUTO_TEST_CASE(what_was_saved_is_loaded_and_another_step_is_refused) {
  auto subject = learner();
  BOOST_REQUIRE(subject.step(step_of(1)));
  const auto saved = subject.save(folder / "rank-0").value();
  auto other = learner();
  BOOST_TEST(other.load(saved, folder / "rank-0", 1).has_value());
  BOOST_TEST((other.load(saved, folder / "rank-0", 2).error().code == errc::conflict));
  std::ofstream(folder / "rank-0/step") << 7;
  BOOST_TEST((other.load(saved, folder / "rank-0", 1).error().code == errc::damaged));
}

BOOST_AUTO_TEST_CASE(exports_and_dumps_are_there_when_the_step_is) {
  options.exports = folder / "tokens";
  options.dump = folder / "dump";
  auto subject = learner();
  BOOST_REQUIRE(subject.step(step_of()));
  BOOST_TEST(fs::exists(folder / "tokens/step-000001/STABLE"));
  const auto lines = read_file(folder / "tokens/step-000001/rank-0.jsonl", 1 << 24).value();
  std::uint64_t expected = 0; // sequences with a token to train
  micro_batch_tensors tensors;
  for (const auto &batch : batches) {
    widen(batch, tensors);
    std::size_t at = 0;
    for (const auto length : tensors.sequence_lengths.values()) {
      const auto mask = tensors.loss_mask.values().subspan(at, static_cast<std::size_t>(length));
      expected += std::ranges::count(mask, 1) > 0 ? 1U : 0U;
      at += static_cast<std::size_t>(length);
    }
  }
  BOOST_TEST(static_cast<std::uint64_t>(std::ranges::count(lines, '\n')) == expected);
  BOOST_TEST(fs::exists(folder / "dump/step-000001/rank-0/mb-000.safetensors"));
  BOOST_TEST(fs::exists(folder / "dump/step-000001/parameters/step"));
}

// A reader that waits for STABLE never sees a step of which a rank has not written all.
BOOST_AUTO_TEST_CASE(an_export_is_stable_only_when_every_rank_has_written_it) {
  auto two = make_local_collective(2, std::chrono::milliseconds(300));
  options.exports = folder / "tokens";
  auto subject = learner();
  auto step = step_of();
  const learner_step lonely{step.step, {}, step.totals, {}, batches, *two[0]};
  BOOST_TEST(!subject.step(lonely).has_value());
  BOOST_TEST(fs::exists(folder / "tokens/step-000001/rank-0.jsonl"));
  BOOST_TEST(!fs::exists(folder / "tokens/step-000001/STABLE"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
