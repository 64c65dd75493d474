// SPDX-License-Identifier: Apache-2.0
#include "actors/group_set.hpp"

#include <random>
#include <set>

#include <boost/test/unit_test.hpp>

namespace millrace::test {
namespace {

BOOST_AUTO_TEST_SUITE(group_set_suite)

BOOST_AUTO_TEST_CASE(it_behaves_as_a_set_of_groups_does) {
  const auto seed = std::random_device{}();
  BOOST_TEST_MESSAGE("seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 50; ++round) {
    group_set set;
    std::set<std::pair<std::uint32_t, std::uint64_t>> model;
    for (int i = 0; i < 400; ++i) {
      const group_ref ref{random() % 60, static_cast<std::uint32_t>(random() % 2)};
      const std::pair key{ref.source, ref.ordinal};
      if (random() % 3 != 0)
        BOOST_REQUIRE_EQUAL(set.insert(ref), model.insert(key).second);
      else
        BOOST_REQUIRE_EQUAL(set.erase(ref), model.erase(key) == 1);
      BOOST_REQUIRE_EQUAL(set.size(), model.size());
      BOOST_REQUIRE_EQUAL(set.contains(ref), model.contains(key));
    }
    std::vector<std::pair<std::uint32_t, std::uint64_t>> listed;
    for (auto ref : set.list())
      listed.emplace_back(ref.source, ref.ordinal);
    BOOST_REQUIRE(std::ranges::equal(listed, model));
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
