// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/collective.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include "runtime/collective/gloo.hpp"
#include "runtime/collective/local.hpp"
#include "runtime/collective/nccl.hpp"
#include "runtime/device/device.hpp"
#include "tests/support/ranks.hpp"

using namespace millrace;
using namespace std::chrono_literals;
using millrace::test::on_all_ranks;

namespace {

using ranks = std::vector<std::unique_ptr<collective>>;
using clock_type = std::chrono::steady_clock;

ranks all_of(std::vector<result<std::unique_ptr<collective>>> joined) {
  ranks made;
  for (auto &one : joined) {
    BOOST_REQUIRE_MESSAGE(one, one.error().message);
    made.push_back(std::move(*one));
  }
  return made;
}

// One conformance suite for every backend.
struct local_backend {
  static ranks make(int size, std::chrono::milliseconds deadline) {
    return make_local_collective(size, deadline);
  }
};

struct gloo_backend {
  static ranks make(int size, std::chrono::milliseconds deadline) {
    const auto store = make_gloo_store();
    std::vector<result<std::unique_ptr<collective>>> joined(static_cast<std::size_t>(size));
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        joined[static_cast<std::size_t>(rank)] =
            join_gloo({.rank = rank, .size = size, .deadline = deadline}, store);
      });
    threads.clear(); // joins
    return all_of(std::move(joined));
  }
};

/// A GPU for each rank: NCCL refuses two ranks on one.
struct nccl_backend {
  static constexpr std::size_t most_ranks = 4;
  static ranks make(int size, std::chrono::milliseconds deadline) {
    const auto store = make_gloo_store();
    std::vector<result<std::unique_ptr<collective>>> joined(static_cast<std::size_t>(size));
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        joined[static_cast<std::size_t>(rank)] =
            join_nccl({.rank = rank, .size = size, .device = rank, .deadline = deadline}, store);
      });
    threads.clear(); // joins
    return all_of(std::move(joined));
  }
};

using backends = boost::mpl::list<local_backend, gloo_backend, nccl_backend>;

/// A precondition of cases: skips those over NCCL, with the reason, where it cannot be.
boost::test_tools::assertion_result backend_is_here(boost::unit_test::test_unit_id id) {
  boost::test_tools::assertion_result answer(true);
  const std::string name = boost::unit_test::framework::get<boost::unit_test::test_case>(id).p_name;
  if (name.find("nccl_backend") == std::string::npos)
    return answer;
  const auto gpus = devices().size() - 1;
  if (const auto here = nccl_is_here(); !here) {
    answer = false;
    answer.message() << here.error().message;
  } else if (gpus < nccl_backend::most_ranks) {
    answer = false;
    answer.message() << nccl_backend::most_ranks << " GPUs are needed, one for each rank; " << gpus
                     << " are here";
  }
  return answer;
}

void check_all_ok(const std::vector<status> &answers) {
  for (const auto &answer : answers)
    BOOST_TEST(answer.has_value(), (answer ? std::string() : answer.error().message));
}

bool contains(const std::string &text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

template <class T>
std::vector<std::array<T, 2>> reduced(ranks &all, std::array<T, 2> (*value)(int), reduction how) {
  std::vector<std::array<T, 2>> values(all.size());
  check_all_ok(on_all_ranks(all, [&](collective &mine) {
    auto &own = values[static_cast<std::size_t>(mine.rank())];
    own = value(mine.rank());
    return mine.all_reduce({"values", 7}, std::span<T>(own), how);
  }));
  return values;
}

/// Opens the door to the raw exchange.
struct opened : collective {
  using collective::exchange;
};

/// Takes part only in the first exchange of a call, in which ranks say what they ask for. When it
/// returns, the other ranks are in the call and wait for the second.
status begin_a_call(collective &mine) {
  const std::array<std::byte, 24> request{};
  std::vector<std::byte> all(request.size() * static_cast<std::size_t>(mine.size()));
  return (mine.*&opened::exchange)(request, all);
}

/// The second exchange of that call, of no bytes.
status end_a_call(collective &mine) { return (mine.*&opened::exchange)({}, {}); }

} // namespace

BOOST_AUTO_TEST_SUITE(collectives)

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(backend_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(int64_sums_are_exact_on_every_rank, Backend, backends) {
  auto all = Backend::make(4, 10s);
  const auto values = reduced<std::int64_t>(
      all,
      [](int rank) {
        return std::array<std::int64_t, 2>{(1LL << 53) + rank, -rank};
      },
      reduction::sum);
  for (const auto &own : values) {
    BOOST_TEST(own[0] == 4 * (1LL << 53) + 6);
    BOOST_TEST(own[1] == -6);
  }
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(backend_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(double_sums_are_taken_in_the_order_of_the_ranks, Backend, backends) {
  auto all = Backend::make(3, 10s);
  // (1 + 1e16) - 1e16 is 0 in this order and 1 in any that ends with the 1.
  const auto values = reduced<double>(
      all,
      [](int rank) {
        return std::array<double, 2>{rank == 0 ? 1.0 : rank == 1 ? 1e16 : -1e16, 0.5};
      },
      reduction::sum);
  for (const auto &own : values) {
    BOOST_TEST(own[0] == 0.0);
    BOOST_TEST(own[1] == 1.5);
  }
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(backend_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(min_and_max_are_over_all_ranks, Backend, backends) {
  auto all = Backend::make(3, 10s);
  const auto value = [](int rank) { return std::array<std::int64_t, 2>{rank, 10 - rank}; };
  for (const auto &own : reduced<std::int64_t>(all, value, reduction::min)) {
    BOOST_TEST(own[0] == 0);
    BOOST_TEST(own[1] == 8);
  }
  for (const auto &own : reduced<std::int64_t>(all, value, reduction::max)) {
    BOOST_TEST(own[0] == 2);
    BOOST_TEST(own[1] == 10);
  }
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(backend_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(a_sum_beyond_int64_is_the_same_error_on_every_rank, Backend,
                              backends) {
  auto all = Backend::make(2, 10s);
  const auto answers = on_all_ranks(all, [](collective &mine) {
    std::array<std::int64_t, 1> value{std::numeric_limits<std::int64_t>::max() - 1 + mine.rank()};
    return mine.all_reduce({"values", 7}, std::span<std::int64_t>(value), reduction::sum);
  });
  for (const auto &answer : answers) {
    BOOST_REQUIRE(!answer);
    BOOST_TEST((answer.error().code == errc::bad_value));
    BOOST_TEST(answer.error().message == answers[0].error().message);
  }
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(backend_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(gathered_bytes_stand_in_rank_order, Backend, backends) {
  auto all = Backend::make(4, 10s);
  std::vector<std::vector<std::byte>> gathered(4, std::vector<std::byte>(12));
  check_all_ok(on_all_ranks(all, [&](collective &mine) {
    const std::vector<std::byte> own(3, std::byte(mine.rank() + 1));
    return mine.all_gather({"letters", 7}, own, gathered[static_cast<std::size_t>(mine.rank())]);
  }));
  for (const auto &own : gathered)
    for (std::size_t i = 0; i < own.size(); ++i)
      BOOST_TEST(std::to_integer<std::size_t>(own[i]) == i / 3 + 1);
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(backend_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(a_broadcast_reaches_every_rank, Backend, backends) {
  auto all = Backend::make(3, 10s);
  std::vector<std::array<std::byte, 2>> values(3);
  check_all_ok(on_all_ranks(all, [&](collective &mine) {
    auto &own = values[static_cast<std::size_t>(mine.rank())];
    own.fill(std::byte(mine.rank()));
    return mine.broadcast({"a seed", 7}, own, 2);
  }));
  for (const auto &own : values)
    BOOST_TEST((own == std::array<std::byte, 2>{std::byte(2), std::byte(2)}));
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(backend_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(a_job_of_one_rank_needs_nobody, Backend, backends) {
  auto all = Backend::make(1, 10s);
  const auto values = reduced<double>(
      all,
      [](int) {
        return std::array<double, 2>{1.5, 2.5};
      },
      reduction::sum);
  BOOST_TEST(values[0][0] == 1.5);
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(backend_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(empty_blocks_are_exchanged_like_others, Backend, backends) {
  auto all = Backend::make(2, 10s);
  check_all_ok(on_all_ranks(all, [](collective &mine) {
    return mine.all_gather({"nothing", 7}, {}, {});
  }));
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(backend_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(many_rounds_do_not_mix, Backend, backends) {
  auto all = Backend::make(3, 10s);
  const auto wrong = on_all_ranks(all, [](collective &mine) {
    int bad = 0;
    for (std::int64_t round = 0; round < 500; ++round) {
      std::array<std::int64_t, 1> value{round * (mine.rank() + 1)};
      if (!mine.all_reduce({"a round", 7}, std::span<std::int64_t>(value), reduction::sum) ||
          value[0] != round * 6)
        ++bad;
    }
    return bad;
  });
  BOOST_TEST(std::accumulate(wrong.begin(), wrong.end(), 0) == 0);
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(backend_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(different_sizes_are_the_same_conflict_on_every_rank, Backend,
                              backends) {
  auto all = Backend::make(3, 10s);
  const auto answers = on_all_ranks(all, [](collective &mine) {
    std::vector<std::int64_t> values(mine.rank() == 1 ? 4 : 3);
    return mine.all_reduce({"token counts", 5}, std::span<std::int64_t>(values), reduction::sum);
  });
  for (const auto &answer : answers) {
    BOOST_REQUIRE(!answer);
    BOOST_TEST((answer.error().code == errc::conflict));
    BOOST_TEST(contains(answer.error().message, "rank 1: all_reduce of int64 (sum) with 32 bytes"));
    BOOST_TEST(answer.error().message == answers[0].error().message);
  }
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(backend_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(different_calls_are_a_conflict_after_which_ranks_go_on, Backend,
                              backends) {
  auto all = Backend::make(2, 10s);
  const auto answers = on_all_ranks(all, [](collective &mine) {
    std::array<std::int64_t, 1> value{mine.rank()};
    const auto how = mine.rank() == 0 ? reduction::sum : reduction::max;
    return mine.all_reduce({"values", 7}, std::span<std::int64_t>(value), how);
  });
  for (const auto &answer : answers)
    BOOST_TEST((!answer && answer.error().code == errc::conflict));
  check_all_ok(on_all_ranks(all, [](collective &mine) {
    return mine.all_gather({"nothing", 7}, {}, {});
  }));
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(backend_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(a_missing_rank_ends_the_others_by_the_deadline, Backend, backends) {
  auto all = Backend::make(3, 300ms);
  auto missing = std::move(all[2]);
  const auto start = clock_type::now();
  const auto answers = on_all_ranks(all, [](collective &mine) {
    return mine.all_gather({"token counts", 5}, {}, {});
  });
  BOOST_TEST((clock_type::now() - start < 5s));
  for (std::size_t i = 0; i < 2; ++i) {
    BOOST_REQUIRE(!answers[i]);
    const auto &message = answers[i].error().message;
    // The first to give up may close the connection on the other, before its own deadline.
    BOOST_TEST(
        (answers[i].error().code == errc::timed_out || answers[i].error().code == errc::peer_lost));
    BOOST_TEST(
        contains(message, fmt::format("step 5: all_gather of token counts, rank {} of 3", i)),
        message);
  }
  BOOST_TEST(
      (answers[0].error().code == errc::timed_out || answers[1].error().code == errc::timed_out));
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(backend_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(a_rank_that_leaves_ends_the_others_before_the_deadline, Backend,
                              backends) {
  auto all = Backend::make(2, 60s);
  const auto start = clock_type::now();
  std::jthread leaver([rank = std::move(all[1])]() mutable { rank.reset(); });
  const auto answers = on_all_ranks(all, [](collective &mine) {
    return mine.all_gather({"token counts", 5}, {}, {});
  });
  BOOST_TEST((clock_type::now() - start < 30s));
  BOOST_REQUIRE(!answers[0]);
  BOOST_TEST((answers[0].error().code == errc::peer_lost));
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(backend_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(abort_ends_a_call_under_way_and_then_every_rank, Backend, backends) {
  for (int round = 0; round < 10; ++round) { // now before, now after the others wait
    auto all = Backend::make(3, 60s);
    const auto start = clock_type::now();
    const auto answers = on_all_ranks(all, [&](collective &mine) -> status {
      if (mine.rank() == 2) {
        BOOST_TEST(begin_a_call(mine).has_value());
        all[0]->abort("the run stops");
        return end_a_call(mine);
      }
      std::array<std::int64_t, 0> nothing; // a call whose request is all zeros
      return mine.all_reduce({"token counts", 0}, std::span<std::int64_t>(nothing), reduction::sum);
    });
    BOOST_REQUIRE(!answers[0]); // the others may have had all they needed
    BOOST_TEST(contains(answers[0].error().message, "the run stops"), answers[0].error().message);
    for (const auto &answer : on_all_ranks(all, [](collective &mine) {
           return mine.all_gather({"the next call", 0}, {}, {});
         }))
      BOOST_TEST((!answer && answer.error().code == errc::peer_lost));
    BOOST_TEST((clock_type::now() - start < 30s));
  }
}

BOOST_TEST_DECORATOR(*boost::unit_test::precondition(backend_is_here))
BOOST_AUTO_TEST_CASE_TEMPLATE(after_a_failure_every_call_fails_at_once, Backend, backends) {
  auto all = Backend::make(2, 60s);
  all[0]->abort("the run stops");
  all[0]->abort("another reason");
  for (int i = 0; i < 2; ++i) {
    const auto answer = all[0]->all_gather({"token counts", 5}, {}, {});
    BOOST_REQUIRE(!answer);
    BOOST_TEST(contains(answer.error().message, "the run stops"), answer.error().message);
  }
}

BOOST_AUTO_TEST_SUITE_END()
