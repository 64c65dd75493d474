// SPDX-License-Identifier: Apache-2.0
#include "actors/peer.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/actors.hpp"
#include "tests/support/fake_remote.hpp"

namespace millrace::test {
namespace {

BOOST_AUTO_TEST_SUITE(peer_suite)

BOOST_AUTO_TEST_CASE(every_role_is_found_by_the_name_that_it_has) {
  for (const auto what : {role::directory, role::env_reader, role::assembler, role::scorer,
                          role::planner, role::packer, role::trainer, role::host})
    BOOST_TEST((role_of(to_string(what)) == what), to_string(what));
  BOOST_TEST(to_string(role::env_reader) == "env-reader");
}

BOOST_AUTO_TEST_CASE(a_name_that_is_no_role_is_none) {
  for (const char *name : {"", "Scorer", "scorer ", "scorers", "feeder", "scorer-1"})
    BOOST_TEST(!role_of(name), name);
}

BOOST_AUTO_TEST_CASE(the_number_of_a_name_stands_after_its_last_hyphen) {
  BOOST_TEST(number_in("env-reader-2").value() == 2U);
  BOOST_TEST(number_in("feeder-0").value() == 0U);
  BOOST_TEST(number_in("a-4294967295").value() == 4294967295U);
}

BOOST_AUTO_TEST_CASE(a_name_without_a_number_at_its_end_has_none) {
  for (const char *name : {"", "planner", "env-reader", "7", "scorer-", "scorer-1x", "scorer-x1",
                           "scorer--", "scorer- 1", "scorer-+1", "a-4294967296"})
    BOOST_TEST(!number_in(name), name);
}

BOOST_AUTO_TEST_CASE(peers_are_the_same_if_name_incarnation_and_actor_are) {
  actor_world world;
  probe<drain> one(world);
  probe<drain> other(world);
  BOOST_TEST((peer({"a", 1}, one.actor()) == peer({"a", 1}, one.actor())));
  BOOST_TEST((peer({"a", 1}, one.actor()) != peer({"a", 1}, other.actor())));
  BOOST_TEST((peer({"a", 1}, one.actor()) != peer({"b", 1}, one.actor())));
  BOOST_TEST((peer({"a", 1}, one.actor()) != peer({"a", 2}, one.actor())));
  BOOST_TEST((peer(one.actor()) != peer(other.actor())));
}

// Two ways to one actor of another process are one peer.
BOOST_AUTO_TEST_CASE(remote_peers_are_the_same_if_name_and_incarnation_are) {
  const remote_stand_in one("a", 1);
  const remote_stand_in again("a", 1);
  const remote_stand_in later("a", 2);
  BOOST_TEST((one.who == again.who));
  BOOST_TEST((one.who != later.who));
  BOOST_TEST((one.who < later.who));
}

BOOST_AUTO_TEST_CASE(nobody_is_no_peer) {
  actor_world world;
  probe<drain> one(world);
  BOOST_TEST(!peer());
  BOOST_TEST(bool(peer(one.actor())));
  BOOST_TEST(bool(remote_stand_in("a").who));
}

BOOST_AUTO_TEST_CASE(what_is_sent_to_a_peer_comes_here_by_reference_and_elsewhere_as_a_parcel) {
  actor_world world;
  probe<hunger> here(world);
  const remote_stand_in there("reader");
  tell(named("reader", here.actor()), hunger{true});
  tell(there.who, hunger{true});
  world.run();
  BOOST_TEST(here.got<hunger>().size() == 1U);
  BOOST_TEST(there.got<hunger>().size() == 1U);
}

BOOST_AUTO_TEST_CASE(an_actor_of_this_process_always_has_room) {
  actor_world world;
  probe<drain> one(world);
  const remote_stand_in there("a");
  there.behind->takes = false;
  there.behind->room_left = -7;
  BOOST_TEST(peer(one.actor()).can_take());
  BOOST_TEST(peer(one.actor()).room() == INT64_MAX);
  BOOST_TEST(!there.who.can_take());
  BOOST_TEST(there.who.room() == -7);
}

BOOST_AUTO_TEST_CASE(an_actor_names_itself_with_the_incarnation_of_its_process) {
  actor_world world;
  actor_context context;
  context.incarnation = 42;
  struct namer : stage_actor {
    namer(caf::actor_config &config, const actor_context &context, std::vector<peer> &out)
        : stage_actor(config, context, "namer-1") {
      out.push_back(self_of(*this));
    }
    caf::behavior make_behavior() override {
      return {[](const drain &) {}};
    }
  };
  std::vector<peer> got;
  const owned_actor subject(world.system().spawn<namer>(context, std::ref(got)));
  BOOST_TEST(got.at(0).id().name == "namer-1");
  BOOST_TEST(got.at(0).id().incarnation == 42U);
  BOOST_TEST((got.at(0).local() == static_cast<const caf::actor &>(subject)));
  got.clear();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
