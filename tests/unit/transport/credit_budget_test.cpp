// SPDX-License-Identifier: Apache-2.0
#include "transport/credit_budget.hpp"

#include <deque>
#include <map>

#include <boost/test/unit_test.hpp>

#include "runtime/random.hpp"

using namespace millrace;

namespace {

constexpr std::uint64_t limit = 1000, window = 200;

/// What a process holds.
struct holdings {
  std::map<credit_budget::sender, std::uint64_t> of;
  bool hungry = false;

  credit_budget::state state() const {
    std::uint64_t sum = 0;
    for (const auto &[who, bytes] : of)
      sum += bytes;
    return {.held = sum,
            .held_of = [this](auto who) { return of.contains(who) ? of.at(who) : 0; },
            .hungry = hungry};
  }
};

BOOST_AUTO_TEST_SUITE(credit_budgets)

BOOST_AUTO_TEST_CASE(a_sender_gets_a_window_ahead_of_its_need) {
  credit_budget budget(limit, window);
  holdings held;
  budget.add(1, {});
  BOOST_TEST(budget.grant(held.state()).size() == 1U);
  BOOST_TEST(budget.credit(1) == window);
  BOOST_TEST(budget.granted() == window);
  BOOST_TEST(budget.grant(held.state()).empty());
}

BOOST_AUTO_TEST_CASE(the_window_is_filled_up_when_half_of_it_is_used) {
  credit_budget budget(limit, window);
  holdings held;
  budget.add(1, {});
  budget.grant(held.state());
  BOOST_TEST(budget.use(1, 100));
  BOOST_TEST(budget.grant(held.state()).empty());
  BOOST_TEST(budget.use(1, 1));
  BOOST_TEST(budget.grant(held.state()).size() == 1U);
  BOOST_TEST(budget.credit(1) == 101U + window);
}

BOOST_AUTO_TEST_CASE(windows_take_at_most_half_of_what_is_free) {
  credit_budget budget(limit, window);
  holdings held{.of = {{99, 200}}};
  for (credit_budget::sender who = 1; who <= 4; ++who)
    budget.add(who, {});
  budget.grant(held.state());
  BOOST_TEST(budget.granted() == (limit - 200) / 2);
  BOOST_TEST(budget.credit(3) == 100U);
}

BOOST_AUTO_TEST_CASE(nothing_is_granted_over_the_limit) {
  credit_budget budget(limit, window);
  holdings held{.of = {{1, limit + 1}}};
  budget.add(1, {});
  budget.want(1, 1);
  BOOST_TEST(budget.grant(held.state()).empty());
  BOOST_TEST(budget.starving());
}

BOOST_AUTO_TEST_CASE(who_needs_more_than_its_window_gets_it_if_there_is_room) {
  credit_budget budget(limit, window);
  holdings held{.of = {{1, 10}}};
  budget.add(1, {});
  budget.want(1, 700);
  budget.grant(held.state());
  BOOST_TEST(budget.credit(1) == 700U);
  BOOST_TEST(!budget.starving());
  budget.want(1, 1200);
  BOOST_TEST(budget.grant(held.state()).empty());
  BOOST_TEST(budget.starving());
}

BOOST_AUTO_TEST_CASE(without_credit_nothing_may_be_used) {
  credit_budget budget(limit, window);
  holdings held;
  BOOST_TEST(!budget.use(1, 1));
  budget.add(1, {});
  budget.grant(held.state());
  BOOST_TEST(!budget.use(1, window + 1));
  BOOST_TEST(budget.use(1, window));
}

BOOST_AUTO_TEST_CASE(a_message_larger_than_the_limit_passes_if_nothing_of_its_sender_is_held) {
  credit_budget budget(limit, window);
  holdings held{.of = {{1, 10}, {2, 400}}};
  budget.add(1, {});
  budget.want(1, 5000);
  budget.grant(held.state());
  BOOST_TEST(budget.credit(1) < 5000U); // something of it is held
  held.of[1] = 0;
  budget.grant(held.state());
  BOOST_TEST(budget.credit(1) == 5000U);
  BOOST_TEST(budget.over_limit() == 0U);
  budget.want(1, 10'000);
  BOOST_TEST(budget.grant(held.state()).empty()); // the first of them has not come
  budget.use(1, 5000);
  held.of[1] = 5000;
  BOOST_TEST(budget.grant(held.state()).empty());
  held.of[1] = 0;
  budget.grant(held.state());
  BOOST_TEST(budget.credit(1) == 10'000U);
}

BOOST_AUTO_TEST_CASE(while_hungry_one_message_at_a_time_goes_over_the_limit) {
  credit_budget budget(limit, window);
  holdings held{.of = {{1, limit}, {2, 10}}};
  budget.add(1, {});
  budget.add(2, {});
  budget.want(1, 300);
  budget.want(2, 400);
  BOOST_TEST(budget.grant(held.state()).empty());
  held.hungry = true;
  BOOST_TEST(budget.grant(held.state()).size() == 1U);
  BOOST_TEST(budget.credit(1) == 300U);
  BOOST_TEST(budget.credit(2) == 0U);
  BOOST_TEST(budget.over_limit() == 300U);
  BOOST_TEST(budget.grant(held.state()).empty());
  budget.use(1, 300);
  budget.grant(held.state());
  BOOST_TEST(budget.credit(2) == 400U);
  BOOST_TEST(budget.over_limit() == 700U);
}

BOOST_AUTO_TEST_CASE(a_next_session_gets_what_the_one_before_had_left) {
  credit_budget budget(limit, window);
  holdings held{.of = {{2, limit}}};
  budget.add(1, {});
  budget.want(1, 3000); // an exception: it holds nothing of it
  budget.grant(held.state());
  budget.use(1, 100);
  const auto rest = budget.remove(1);
  BOOST_TEST(rest.unused == 2900U);
  BOOST_TEST(rest.exception == 2900U);
  BOOST_TEST(budget.granted() == 0U);
  budget.add(1, rest);
  BOOST_TEST(budget.credit(1) == 2900U);
  budget.want(1, 6000);
  BOOST_TEST(budget.grant(held.state()).empty()); // that message is still on its way
}

BOOST_AUTO_TEST_CASE(absurd_wishes_are_ignored) {
  credit_budget budget(limit, window);
  holdings held;
  budget.add(1, {});
  budget.want(1, UINT64_MAX);
  budget.grant(held.state());
  BOOST_TEST(budget.credit(1) == window);
}

/// Senders with messages of random sizes, each as large as the limit at most; what arrived is held
/// for a while.
struct traffic {
  explicit traffic(std::uint64_t seed) : random(seed) {
    for (credit_budget::sender who = 1; who <= 4; ++who)
      budget.add(who, {});
  }

  void step() {
    const credit_budget::sender who = 1 + random.below(4);
    auto &next = size[who];
    if (next == 0)
      next = random.chance(10) ? random.between(1, 1500) : random.between(1, 90);
    if (budget.credit(who) - sent[who] >= next) {
      sent[who] += next;
      BOOST_REQUIRE(budget.use(who, next));
      held.of[who] += next;
      kept.emplace_back(who, next);
      next = 0;
      ++messages;
    } else {
      budget.want(who, sent[who] + next);
    }
    if (!kept.empty() && random.chance(60)) {
      held.of[kept.front().first] -= kept.front().second;
      kept.pop_front();
    }
    budget.grant(held.state());
  }

  random_source random;
  credit_budget budget{limit, window};
  holdings held;
  std::map<credit_budget::sender, std::uint64_t> sent, size;
  std::deque<std::pair<credit_budget::sender, std::uint64_t>> kept;
  int messages = 0;
};

BOOST_AUTO_TEST_CASE(held_and_granted_stay_under_the_limit_and_nobody_is_stuck) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      traffic some(seed);
      for (int i = 0; i < 2000; ++i) {
        some.step();
        // Each of four senders may have one message over the limit.
        BOOST_REQUIRE(some.held.state().held + some.budget.granted() <= limit + 4 * 1500);
      }
      BOOST_TEST(some.messages > 500);
      for (const auto &[who, bytes] : some.sent)
        BOOST_TEST(bytes > 1000U);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
