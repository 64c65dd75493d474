// SPDX-License-Identifier: Apache-2.0
#include "actors/node/post.hpp"

#include "actors/node/codec.hpp"
#include "tests/unit/actors/node/host_fixture.hpp"

namespace millrace::test {
namespace {

struct office_fixture : post_fixture {
  office_fixture() : post_fixture("here") {}

  /// For which actors something came, once there is so much.
  static lines names_in(host &who, std::size_t count) {
    BOOST_REQUIRE(who.log.wait_for(count));
    lines out;
    for (const auto &one : who.log.arrivals())
      out.push_back(decode(
                        one.parts, [](const peer_id &) { return peer(); }, nullptr)
                        .value()
                        .to);
    return out;
  }
};

BOOST_FIXTURE_TEST_SUITE(post_office, office_fixture)

BOOST_AUTO_TEST_CASE(an_actor_of_this_process_is_found_by_name_with_and_without_its_incarnation) {
  probe<hunger> actor(world);
  office->add_local({role::env_reader, peer({"env-reader-0", 5}, actor.actor())});
  BOOST_TEST((office->find({"env-reader-0", 0}).local() == actor.actor()));
  BOOST_TEST((office->find({"env-reader-0", 5}).local() == actor.actor()));
  BOOST_TEST(!office->find({"env-reader-0", 4}).local());
}

BOOST_AUTO_TEST_CASE(what_is_sent_before_a_process_is_known_waits_for_it) {
  const auto other = listening("scorer-1", 7);
  tell(office->find({"scorer-1", 0}), hunger{true});
  tell(office->find({"scorer-1", 7}), hunger{true});
  office->learn(entry(role::scorer, "scorer-1", 7));
  BOOST_TEST((names_in(*other, 2) == lines{"scorer-1", "scorer-1"}));
}

BOOST_AUTO_TEST_CASE(peers_of_one_name_and_incarnation_are_one) {
  BOOST_TEST((office->find({"scorer-1", 7}) == office->find({"scorer-1", 7})));
  BOOST_TEST((office->find({"scorer-1", 7}) != office->find({"scorer-1", 8})));
}

BOOST_AUTO_TEST_CASE(nothing_is_kept_for_an_incarnation_that_is_gone) {
  office->learn(entry(role::scorer, "scorer-1", 7)); // nobody listens
  const auto gone = office->find({"scorer-1", 7});
  tell(gone, hunger{true});
  BOOST_TEST(eventually([&] { return office->stats().in_flight_bytes > 0; }));
  office->forget("scorer-1", 7);
  tell(gone, hunger{true});
  BOOST_TEST(eventually([&] { return office->stats().in_flight_bytes == 0; }));
  BOOST_TEST(gone.can_take());
}

// The directory's process learns of the next one before its host has taken the last one down.
BOOST_AUTO_TEST_CASE(an_incarnation_is_forgotten_though_the_next_one_has_its_name) {
  office->learn(entry(role::scorer, "scorer-1", 7));
  const auto gone = office->find({"scorer-1", 7});
  const auto whoever = office->find({"scorer-1", 0});
  tell(gone, hunger{true});
  tell(whoever, hunger{true});
  const auto next = listening("scorer-1", 8);
  office->learn(entry(role::scorer, "scorer-1", 8));
  office->forget("scorer-1", 7);
  BOOST_TEST(gone.can_take());
  office->learn(entry(role::scorer, "scorer-1", 8));
  tell(gone, hunger{true});
  tell(whoever, hunger{false});
  BOOST_TEST((names_in(*next, 1) == lines{"scorer-1"}));
}

BOOST_AUTO_TEST_CASE(a_process_can_be_forgotten_twice_and_without_being_known) {
  office->learn(entry(role::scorer, "scorer-1", 7));
  office->forget("scorer-1", 7);
  office->forget("scorer-1", 7);
  office->forget("scorer-2", 1);
  office->send("scorer-1", host_parcel{drain_process{}});
  BOOST_TEST(office->stats().in_flight_bytes == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
