// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine_memory.hpp"

#include <fstream>
#include <string>

#include "tests/support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30;

/// A made-up system of 8 GiB.
class fake_system {
public:
  fake_system() { write("proc/meminfo", "MemFree:  1 kB\nMemTotal:        8388608 kB\n"); }

  void write(const std::string &file, const std::string &text) const {
    std::filesystem::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file) << text;
  }
  system_roots roots() const { return {folder_ / "proc", folder_ / "cgroup"}; }
  std::uint64_t memory() const { return machine_memory(roots()); }

private:
  test::temporary_folder folder_;
};

std::string bytes(std::uint64_t count) { return std::to_string(count) + "\n"; }

BOOST_AUTO_TEST_SUITE(machine_memories)

BOOST_AUTO_TEST_CASE(without_a_cgroup_it_is_that_of_the_machine) {
  BOOST_TEST(fake_system().memory() == 8 * gibibyte);
}

BOOST_AUTO_TEST_CASE(a_limit_of_a_version_2_cgroup_counts) {
  const fake_system system;
  system.write("proc/self/cgroup", "0::/jobs/one\n");
  system.write("cgroup/jobs/one/memory.max", bytes(gibibyte));
  BOOST_TEST(system.memory() == gibibyte);
}

BOOST_AUTO_TEST_CASE(a_limit_of_a_cgroup_above_counts_too) {
  const fake_system system;
  system.write("proc/self/cgroup", "0::/jobs/one\n");
  system.write("cgroup/jobs/one/memory.max", "max\n");
  system.write("cgroup/jobs/memory.max", bytes(2 * gibibyte));
  BOOST_TEST(system.memory() == 2 * gibibyte);
}

BOOST_AUTO_TEST_CASE(a_cgroup_without_a_limit_leaves_that_of_the_machine) {
  const fake_system system;
  system.write("proc/self/cgroup", "0::/\n");
  system.write("cgroup/memory.max", "max\n");
  BOOST_TEST(system.memory() == 8 * gibibyte);
}

BOOST_AUTO_TEST_CASE(a_container_that_sees_only_the_root_of_its_cgroup_finds_the_limit) {
  const fake_system system;
  system.write("proc/self/cgroup", "0::/docker/0123\n");
  system.write("cgroup/memory.max", bytes(3 * gibibyte));
  BOOST_TEST(system.memory() == 3 * gibibyte);
}

BOOST_AUTO_TEST_CASE(a_limit_of_a_version_1_cgroup_counts) {
  const fake_system system;
  system.write("proc/self/cgroup", "9:name=systemd:/x\n4:cpu,memory:/jobs\n0::/\n");
  system.write("cgroup/memory/jobs/memory.limit_in_bytes", bytes(gibibyte / 2));
  BOOST_TEST(system.memory() == gibibyte / 2);
}

BOOST_AUTO_TEST_CASE(version_1_says_no_limit_with_a_huge_number) {
  const fake_system system;
  system.write("proc/self/cgroup", "4:memory:/jobs\n");
  system.write("cgroup/memory/jobs/memory.limit_in_bytes", "9223372036854771712\n");
  BOOST_TEST(system.memory() == 8 * gibibyte);
}

BOOST_AUTO_TEST_CASE(a_controller_whose_name_holds_memory_is_not_it) {
  const fake_system system;
  system.write("proc/self/cgroup", "4:xmemory:/jobs\n");
  system.write("cgroup/memory/jobs/memory.limit_in_bytes", bytes(1));
  BOOST_TEST(system.memory() == 8 * gibibyte);
}

BOOST_AUTO_TEST_CASE(lines_that_are_none_are_skipped) {
  const fake_system system;
  system.write("proc/self/cgroup", "\nx\n1:memory\n0::/jobs\n");
  system.write("cgroup/jobs/memory.max", bytes(gibibyte));
  BOOST_TEST(system.memory() == gibibyte);
}

BOOST_AUTO_TEST_CASE(a_system_that_says_nothing_gives_none) {
  const test::temporary_folder empty;
  BOOST_TEST(machine_memory({empty.path(), empty.path()}) == 0U);
}

BOOST_AUTO_TEST_CASE(this_machine_says_something) { BOOST_TEST(machine_memory() > 0U); }

BOOST_AUTO_TEST_CASE(the_limit_by_default_is_a_quarter_of_it) {
  const fake_system system;
  BOOST_TEST(effective_memory_limit(0, system.roots()) == 2 * gibibyte);
}

BOOST_AUTO_TEST_CASE(a_limit_that_is_configured_stands) {
  const fake_system system;
  BOOST_TEST(effective_memory_limit(5, system.roots()) == 5U);
}

BOOST_AUTO_TEST_CASE(the_limit_by_default_leaves_room_on_the_smallest_machine) {
  const test::temporary_folder empty;
  BOOST_TEST(effective_memory_limit(0, {empty.path(), empty.path()}) == gibibyte / 16);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace
