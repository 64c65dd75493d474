// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/gloo.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "tests/support/ranks.hpp"

using namespace millrace;
using namespace std::chrono_literals;
using millrace::test::on_all_ranks;

namespace {

using ranks = std::vector<std::unique_ptr<collective>>;
using clock_type = std::chrono::steady_clock;

bool contains(const std::string &text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// Every rank adds its number and 1.
void check_sums(ranks &all) {
  const auto size = static_cast<std::int64_t>(all.size());
  for (const auto &[done, numbers, ones] : on_all_ranks(all, [](collective &mine) {
         std::array<std::int64_t, 2> values{mine.rank(), 1};
         const bool ok =
             mine.all_reduce({"values", 7}, std::span(values), reduction::sum).has_value();
         return std::tuple(ok, values[0], values[1]);
       })) {
    BOOST_TEST(done);
    BOOST_TEST(numbers == size * (size - 1) / 2);
    BOOST_TEST(ones == size);
  }
}

/// All ranks of a job, each a thread that joins.
ranks joined(int size, const std::string &prefix, const std::function<gloo_store(int)> &store) {
  ranks all(static_cast<std::size_t>(size));
  std::vector<std::string> problems(all.size());
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      const auto place = static_cast<std::size_t>(rank);
      auto one =
          join_gloo({.rank = rank, .size = size, .prefix = prefix, .deadline = 20s}, store(rank));
      if (one)
        all[place] = std::move(*one);
      else
        problems[place] = one.error().message;
    });
  threads.clear(); // joins
  for (const auto &problem : problems)
    BOOST_REQUIRE_MESSAGE(problem.empty(), problem);
  return all;
}

} // namespace

BOOST_AUTO_TEST_SUITE(gloo_joining)

BOOST_AUTO_TEST_CASE(a_rank_that_never_joins_is_a_time_out_that_says_who_waited) {
  const auto joined = join_gloo({.rank = 0, .size = 2, .deadline = 200ms}, make_gloo_store());
  BOOST_REQUIRE(!joined);
  BOOST_TEST((joined.error().code == errc::timed_out), joined.error().message);
  BOOST_TEST(contains(joined.error().message, "rank 0 of 2"), joined.error().message);
}

BOOST_AUTO_TEST_CASE(a_rank_that_waits_for_another_to_join_ends_when_the_relay_does) {
  gloo_relay relay([](std::string, std::string) {});
  std::jthread end([&] { relay.abort("a test"); });
  const auto joined = join_gloo({.rank = 0, .size = 2, .deadline = 600s}, relay.store());
  BOOST_REQUIRE(!joined);
  BOOST_TEST((joined.error().code == errc::peer_lost), joined.error().message);
  BOOST_TEST(contains(joined.error().message, "a test"), joined.error().message);
}

BOOST_AUTO_TEST_CASE(an_address_that_is_not_this_machine_is_an_io_error) {
  const auto joined = join_gloo({.rank = 0, .size = 1, .address = "192.0.2.1", .deadline = 200ms},
                                make_gloo_store());
  BOOST_REQUIRE(!joined);
  BOOST_TEST((joined.error().code == errc::io), joined.error().message);
  BOOST_TEST(contains(joined.error().message, "192.0.2.1"), joined.error().message);
}

namespace {

/// Carries what ranks publish on their relays to all ranks, in random order and some of it twice.
class random_carrier {
public:
  explicit random_carrier(std::size_t ranks) {
    for (std::size_t rank = 0; rank < ranks; ++rank)
      relays_.push_back(std::make_unique<gloo_relay>(
          [this, ranks](const std::string &key, const std::string &value) {
            const std::lock_guard lock(mutex_);
            for (std::size_t to = 0; to < 2 * ranks; ++to)
              on_the_way_.push_back({to % ranks, key, to < ranks ? value : "late words"});
            came_.notify_all();
          }));
    const auto seed = std::random_device{}();
    BOOST_TEST_MESSAGE("seed " << seed);
    thread_ = std::jthread([this, seed](const std::stop_token &stop) { carry(stop, seed); });
  }
  gloo_store store(int rank) const { return relays_[static_cast<std::size_t>(rank)]->store(); }

private:
  struct notice {
    std::size_t to;
    std::string key;
    std::string value;
  };

  void carry(const std::stop_token &stop, unsigned seed) {
    std::minstd_rand random(seed);
    std::unique_lock lock(mutex_);
    while (came_.wait(lock, stop, [&] { return !on_the_way_.empty(); })) {
      const auto at = random() % on_the_way_.size();
      // The first words of a rank come before its late ones.
      const auto first = std::ranges::find_if(on_the_way_, [&](const notice &one) {
        return one.to == on_the_way_[at].to && one.key == on_the_way_[at].key;
      });
      const auto what = *first;
      on_the_way_.erase(first);
      relays_[what.to]->deliver(what.key, what.value);
    }
  }

  std::vector<std::unique_ptr<gloo_relay>> relays_;
  std::mutex mutex_;
  std::condition_variable_any came_;
  std::vector<notice> on_the_way_;
  std::jthread thread_; ///< last: it uses all of the above
};

} // namespace

BOOST_AUTO_TEST_CASE(ranks_meet_over_relays_whatever_order_their_notices_come_in) {
  for (int round = 0; round < 5; ++round) {
    const random_carrier carrier(3);
    auto all = joined(3, "", [&](int rank) { return carrier.store(rank); });
    check_sums(all);
  }
}

// What ranks of an earlier job have said is still in the store.
BOOST_AUTO_TEST_CASE(a_job_with_another_prefix_does_not_see_the_words_of_the_one_before) {
  const auto store = make_gloo_store();
  for (const auto *prefix : {"generation 1", "generation 2"}) {
    auto all = joined(2, prefix, [&](int) { return store; });
    check_sums(all);
  }
}

BOOST_AUTO_TEST_CASE(a_relay_gives_what_its_own_ranks_have_published) {
  std::vector<std::pair<std::string, std::string>> carried;
  gloo_relay relay([&](std::string key, std::string value) { carried.emplace_back(key, value); });
  relay.deliver("of another process", "somewhere");
  BOOST_TEST(!join_gloo({.rank = 0, .size = 2, .prefix = "generation 1", .deadline = 200ms},
                        relay.store()));
  BOOST_TEST(!carried.empty());
  BOOST_TEST((relay.published() == carried));
  for (const auto &[key, value] : carried)
    BOOST_TEST(key.starts_with("generation 1"), key);
}

BOOST_AUTO_TEST_CASE(a_rank_that_no_notice_reaches_is_a_time_out) {
  std::vector<std::string> published;
  const gloo_relay relay(
      [&](const std::string &key, const std::string &) { published.push_back(key); });
  const auto joined = join_gloo({.rank = 0, .size = 2, .deadline = 200ms}, relay.store());
  BOOST_REQUIRE(!joined);
  BOOST_TEST((joined.error().code == errc::timed_out), joined.error().message);
  BOOST_TEST(!published.empty());
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

/// The ranks of a job as processes: children of this one, which carries between them what they
/// publish, a line each. A child does all-reduces until one fails, and says so by its exit code.
class rank_processes {
public:
  static constexpr int lost = 75;      ///< exit code: another rank is gone
  static constexpr int timed_out = 76; ///< exit code: the deadline passed

  rank_processes(int size, std::chrono::milliseconds deadline) {
    for (int rank = 0; rank < size; ++rank) {
      std::array<int, 2> ends{};
      BOOST_REQUIRE_EQUAL(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
      const auto id = ::fork();
      BOOST_REQUIRE(id >= 0);
      if (id == 0) {
        for (const auto &other : children_)
          ::close(other.socket);
        ::close(ends[0]);
        be_rank(rank, size, deadline, ends[1]);
      }
      ::close(ends[1]);
      children_.push_back({id, ends[0]});
    }
  }
  ~rank_processes() {
    for (const auto &one : children_) {
      ::kill(one.id, SIGKILL);
      ::close(one.socket);
      ::waitpid(one.id, nullptr, 0);
    }
  }
  rank_processes(const rank_processes &) = delete;
  rank_processes &operator=(const rank_processes &) = delete;

  void signal(int rank, int number) { ::kill(at(rank).id, number); }

  /// Until all ranks have done an all-reduce; false at the deadline.
  bool wait_until_they_work(clock_type::time_point deadline) {
    const auto works = [](const child &one) { return one.works; };
    while (!std::ranges::all_of(children_, works))
      if (!carry(deadline))
        return false;
    return true;
  }

  /// The exit code of a rank that ends by itself; -1 if it has not by the deadline.
  int exit_code(int rank, clock_type::time_point deadline) {
    while (!at(rank).ended)
      if (!carry(deadline))
        return -1;
    int state = 0;
    ::waitpid(at(rank).id, &state, 0);
    const int code = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
    ::close(at(rank).socket);
    children_.erase(children_.begin() + rank);
    return code;
  }

private:
  struct child {
    pid_t id;
    int socket;
    std::string received = {}; ///< the begin of a line
    bool works = false;
    bool ended = false;
  };
  child &at(int rank) { return children_[static_cast<std::size_t>(rank)]; }

  static void write_line(int socket, const std::string &text) {
    const auto line = text + '\n';
    for (std::size_t done = 0; done < line.size();) {
      const auto wrote = ::send(socket, line.data() + done, line.size() - done, MSG_NOSIGNAL);
      if (wrote <= 0)
        return;
      done += static_cast<std::size_t>(wrote);
    }
  }

  static std::string hex(const std::string &bytes) {
    std::string out;
    for (const char byte : bytes)
      out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return out;
  }
  static std::string unhex(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2)
      out += static_cast<char>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16));
    return out;
  }

  [[noreturn]] static void be_rank(int rank, int size, std::chrono::milliseconds deadline,
                                   int socket) {
    gloo_relay relay([socket](const std::string &key, const std::string &value) {
      write_line(socket, hex(key) + ' ' + hex(value));
    });
    std::thread([&relay, socket] {
      std::string received;
      std::array<char, 4096> buffer{};
      for (ssize_t got = 0; (got = ::read(socket, buffer.data(), buffer.size())) > 0;) {
        received.append(buffer.data(), static_cast<std::size_t>(got));
        for (auto end = received.find('\n'); end != received.npos; end = received.find('\n')) {
          const auto line = received.substr(0, end);
          received.erase(0, end + 1);
          const auto space = line.find(' ');
          relay.deliver(unhex(line.substr(0, space)), unhex(line.substr(space + 1)));
        }
      }
    }).detach();
    auto mine = join_gloo({.rank = rank, .size = size, .deadline = deadline}, relay.store());
    if (!mine)
      ::_exit(1);
    std::array<std::int64_t, 1> value{1};
    auto done = (*mine)->all_reduce({"values", 1}, std::span(value), reduction::sum);
    write_line(socket, "works");
    while (done)
      done = (*mine)->all_reduce({"values", 1}, std::span(value), reduction::max);
    const auto code = done.error().code;
    ::_exit(code == errc::peer_lost ? lost : code == errc::timed_out ? timed_out : 1);
  }

  /// Takes what ranks have said, and hands it on. False at the deadline.
  bool carry(clock_type::time_point deadline) {
    std::vector<pollfd> wanted;
    for (const auto &one : children_)
      wanted.push_back({one.ended ? -1 : one.socket, POLLIN, 0});
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock_type::now());
    if (left <= 0ms || ::poll(wanted.data(), wanted.size(), static_cast<int>(left.count())) <= 0)
      return false;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i].revents != 0)
        hear(children_[i]);
    return true;
  }

  void hear(child &from) {
    std::array<char, 4096> buffer{};
    const auto got = ::read(from.socket, buffer.data(), buffer.size());
    from.ended = got <= 0;
    from.received.append(buffer.data(), from.ended ? 0 : static_cast<std::size_t>(got));
    for (auto end = from.received.find('\n'); end != from.received.npos;
         end = from.received.find('\n')) {
      const auto line = from.received.substr(0, end);
      from.received.erase(0, end + 1);
      from.works = from.works || line == "works";
      if (line != "works")
        for (const auto &one : children_)
          if (&one != &from && !one.ended)
            write_line(one.socket, line);
    }
  }

  std::vector<child> children_; ///< by rank
};

} // namespace

BOOST_AUTO_TEST_SUITE(gloo_processes)

BOOST_AUTO_TEST_CASE(a_rank_that_is_killed_ends_all_others_long_before_the_deadline) {
  rank_processes all(4, 60s);
  BOOST_REQUIRE(all.wait_until_they_work(clock_type::now() + 60s));
  all.signal(3, SIGKILL);
  const auto deadline = clock_type::now() + 20s;
  for (int i = 0; i < 3; ++i)
    BOOST_TEST(all.exit_code(0, deadline) == rank_processes::lost);
}

BOOST_AUTO_TEST_CASE(a_rank_that_hangs_ends_all_others_by_the_deadline) {
  rank_processes all(3, 1s);
  BOOST_REQUIRE(all.wait_until_they_work(clock_type::now() + 60s));
  all.signal(2, SIGSTOP);
  const auto deadline = clock_type::now() + 20s;
  const std::array codes{all.exit_code(0, deadline), all.exit_code(0, deadline)};
  // The first to give up may close the connection on the other, before its own deadline.
  for (const int code : codes)
    BOOST_TEST((code == rank_processes::timed_out || code == rank_processes::lost), code);
  BOOST_TEST(std::ranges::count(codes, rank_processes::timed_out) >= 1);
}

BOOST_AUTO_TEST_SUITE_END()
