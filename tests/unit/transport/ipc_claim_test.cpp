// SPDX-License-Identifier: Apache-2.0
#include "transport/ipc_claim.hpp"

#include <atomic>
#include <csignal>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

/// A socket bound to `path`, as another program leaves it.
int bound(const std::filesystem::path &path, bool listening) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.native().size() + 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  BOOST_REQUIRE(::bind(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0);
  if (listening)
    BOOST_REQUIRE(::listen(fd, 1) == 0);
  return fd;
}

errc code_of(const result<ipc_claim> &got) {
  BOOST_REQUIRE(!got);
  return got.error().code;
}

std::size_t files_in(const test::temporary_folder &folder) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

BOOST_AUTO_TEST_SUITE(ipc_claims)

BOOST_AUTO_TEST_CASE(a_free_path_is_claimed_and_nothing_is_left_of_the_claim) {
  const test::temporary_folder folder;
  {
    const auto claim = ipc_claim::take(folder / "x");
    BOOST_REQUIRE(claim);
    ::close(bound(folder / "x", true));
  }
  BOOST_TEST(files_in(folder) == 0U);
}

BOOST_AUTO_TEST_CASE(a_second_claim_fails_and_takes_nothing_away) {
  const test::temporary_folder folder;
  const auto claim = ipc_claim::take(folder / "x");
  BOOST_REQUIRE(claim);
  const int fd = bound(folder / "x", true);
  const auto second = ipc_claim::take(folder / "x");
  BOOST_TEST((code_of(second) == errc::conflict));
  BOOST_TEST(second.error().message.find("live process") != std::string::npos);
  BOOST_TEST(std::filesystem::exists(folder / "x"));
  BOOST_TEST((code_of(ipc_claim::take(folder / "x")) == errc::conflict));
  ::close(fd);
}

BOOST_AUTO_TEST_CASE(a_path_is_free_once_its_claim_is_gone) {
  const test::temporary_folder folder;
  { const auto claim = ipc_claim::take(folder / "x"); }
  BOOST_TEST(ipc_claim::take(folder / "x").has_value());
}

BOOST_AUTO_TEST_CASE(a_socket_file_whose_owner_is_dead_is_removed) {
  const test::temporary_folder folder;
  ::close(bound(folder / "x", true));
  BOOST_REQUIRE(std::filesystem::exists(folder / "x"));
  const auto claim = ipc_claim::take(folder / "x");
  BOOST_TEST(claim.has_value());
  BOOST_TEST(!std::filesystem::exists(folder / "x"));
}

BOOST_AUTO_TEST_CASE(a_live_owner_without_a_claim_keeps_its_socket) {
  const test::temporary_folder folder;
  const int fd = bound(folder / "x", true);
  BOOST_TEST((code_of(ipc_claim::take(folder / "x")) == errc::conflict));
  BOOST_TEST(std::filesystem::exists(folder / "x"));
  BOOST_TEST(files_in(folder) == 1U);
  ::close(fd);
}

BOOST_AUTO_TEST_CASE(a_killed_process_leaves_a_path_that_can_be_claimed_at_once) {
  const test::temporary_folder folder;
  int ready[2];
  BOOST_REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto claim = ipc_claim::take(folder / "x");
    const int fd = bound(folder / "x", true);
    const char done = claim && fd >= 0 ? 1 : 0;
    if (::write(ready[1], &done, 1) == 1)
      ::pause();
    ::_exit(1);
  }
  char done = 0;
  BOOST_REQUIRE(::read(ready[0], &done, 1) == 1);
  BOOST_REQUIRE(done == 1);
  BOOST_TEST((code_of(ipc_claim::take(folder / "x")) == errc::conflict));
  BOOST_REQUIRE(::kill(child, SIGKILL) == 0);
  BOOST_REQUIRE(::waitpid(child, nullptr, 0) == child);
  BOOST_TEST(std::filesystem::exists(folder / "x"));
  BOOST_TEST(ipc_claim::take(folder / "x").has_value());
  ::close(ready[0]);
  ::close(ready[1]);
}

BOOST_AUTO_TEST_CASE(of_many_that_come_and_go_never_two_have_a_path) {
  const test::temporary_folder folder;
  std::atomic<int> holders{0};
  std::atomic<bool> two{false};
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int turn = 0; turn < 3000; ++turn)
        if (const auto claim = ipc_claim::take(folder / "x")) {
          ++taken;
          if (++holders > 1)
            two = true;
          std::this_thread::yield(); // others look at the lock meanwhile
          if (holders > 1)
            two = true;
          --holders;
        }
    });
  for (auto &each : threads)
    each.join();
  BOOST_TEST(!two);
  BOOST_TEST(taken > 0);
  BOOST_TEST(files_in(folder) == 0U);
}

BOOST_AUTO_TEST_CASE(what_is_no_socket_is_left_alone) {
  const test::temporary_folder folder;
  std::ofstream(folder / "x") << "mine";
  const auto claim = ipc_claim::take(folder / "x");
  BOOST_TEST((code_of(claim) == errc::conflict));
  BOOST_TEST(claim.error().message.find("no socket") != std::string::npos);
  BOOST_TEST(std::filesystem::file_size(folder / "x") == 4U);
}

BOOST_AUTO_TEST_CASE(a_folder_that_is_not_there_is_named) {
  const auto claim = ipc_claim::take("/nonexistent/x");
  BOOST_TEST((code_of(claim) == errc::not_found));
  BOOST_TEST(claim.error().message.find("/nonexistent/x") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_claim_moves_with_its_owner) {
  const test::temporary_folder folder;
  std::optional<ipc_claim> first = ipc_claim::take(folder / "x").value();
  ipc_claim second = std::move(*first);
  first.reset();
  BOOST_TEST((code_of(ipc_claim::take(folder / "x")) == errc::conflict));
  second = ipc_claim::take(folder / "y").value();
  BOOST_TEST(ipc_claim::take(folder / "x").has_value());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace
