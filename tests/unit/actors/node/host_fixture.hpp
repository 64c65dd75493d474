// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "actors/node/host.hpp"
#include "actors/node/host_codec.hpp"
#include "tests/support/actors.hpp"
#include "tests/support/hubs.hpp"
#include "tests/support/temporary_folder.hpp"

namespace millrace::test {

using lines = std::vector<std::string>;

/// A stage that writes down who comes and goes: "up scorer-1 7", "down scorer-1 7: left".
class stage_log {
public:
  explicit stage_log(actor_world &world) {
    const auto line = [box = box_](const char *what, const peer &who) {
      box->push_back(fmt::format("{} {} {}", what, who.id().name, who.id().incarnation));
    };
    actor_ = world.system().spawn<function_actor>(
        [box = box_, line](caf::event_based_actor *) -> caf::behavior {
          return {[line](const peer_up &in) { line("up", in.who); },
                  [line](const peer_draining &in) { line("draining", in.who); },
                  [box, line](const peer_down &in) {
                    line("down", in.who);
                    box->back() += ": " + in.why;
                  },
                  [box](const drain &) { box->push_back("drain"); }};
        });
  }
  ~stage_log() { caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown); }
  stage_log(const stage_log &) = delete;
  stage_log &operator=(const stage_log &) = delete;

  const caf::actor &actor() const { return actor_; }
  lines take() { return std::exchange(*box_, {}); }

private:
  std::shared_ptr<lines> box_ = std::make_shared<lines>();
  caf::actor actor_;
};

/// A post whose hub is real, and that no actor is employed at: what comes to it goes nowhere.
struct post_fixture {
  actor_world world;
  temporary_folder folder;
  std::shared_ptr<memory_meter> memory = std::make_shared<memory_meter>();
  std::shared_ptr<post> office;

  explicit post_fixture(const std::string &process) {
    office = std::make_shared<post>(world.system(), world.context(), memory);
    auto opened = office->open(some_options(process, address(process)));
    BOOST_REQUIRE(opened);
  }
  ~post_fixture() { office->close(std::chrono::milliseconds(0)); }
  post_fixture(const post_fixture &) = delete;
  post_fixture &operator=(const post_fixture &) = delete;

  std::string address(const std::string &process) const {
    return "ipc://" + (folder / (process + ".sock")).string();
  }
  /// A process of one actor that has its name.
  process_entry entry(role what, const std::string &name, std::uint64_t incarnation,
                      process_state state = process_state::alive) const {
    return {name, incarnation, address(name), "", {{what, name}}, state};
  }
  /// A process that listens, and keeps what comes.
  std::unique_ptr<host> listening(const std::string &process, std::uint64_t incarnation) const {
    auto options = some_options(process, address(process));
    options.self.incarnation = incarnation;
    return std::make_unique<host>(std::move(options));
  }
  /// What came to a process, of which there must be so much.
  static std::vector<host_parcel> mail(host &who, std::size_t count) {
    BOOST_REQUIRE_MESSAGE(who.log.wait_for(count), "nothing has come");
    std::vector<host_parcel> out;
    for (const auto &one : who.log.arrivals())
      if (is_host_message(one.parts))
        out.push_back(decode_host(one.parts).value());
    return out;
  }
};

/// The host of process "here", and stand-ins for whom it talks to.
struct host_fixture : post_fixture {
  static constexpr std::uint64_t first_directory = 100; ///< incarnation

  stage_log stage{world};
  probe<run_over, others_ended> supervisor{world};
  host_options options = [] {
    host_options out;
    out.entry = {"here", 5, "", "", {}, process_state::alive};
    out.directory_process = "directory";
    out.directory_endpoint = "tcp://127.0.0.1:7070";
    out.lease = std::chrono::hours(1);
    out.status = [] { return process_status{}; };
    return out;
  }();
  std::optional<owned_actor> subject;

  host_fixture() : post_fixture("here") {}

  /// With one stage of this role here.
  void begin(role what = role::assembler) {
    const std::vector<contact> contacts{
        {what, named(fmt::format("{}-0", to_string(what)), stage.actor())}};
    subject.emplace(world.system().spawn<millrace::host>(world.context(), options, office, contacts,
                                                         caf::actor(), supervisor.actor()));
    world.run();
  }
  void mail_from(const std::string &process, host_parcel what, std::uint64_t incarnation = 0) {
    process_identity from;
    from.process = process;
    from.incarnation = incarnation;
    world.tell(*subject, host_mail{from, std::move(what)});
  }
  /// The directory tells of these.
  void view(std::vector<process_entry> entries, std::uint64_t directory = first_directory) {
    mail_from("directory", host_parcel{directory_view{directory, std::move(entries)}});
  }
  /// A process reports to this one, which has the planner.
  void report(const std::string &process, std::uint64_t incarnation = 0) {
    mail_from(process, host_parcel{process_report{process, "{}"}}, incarnation);
  }
  void link(const std::string &process, std::uint64_t incarnation, link_state state,
            std::string why = {}) {
    world.tell(*subject, link_event{process, incarnation, state, std::move(why)});
  }
  void tick() { world.tell(*subject, host_tick{}); }
  /// Ticks until something has come true.
  bool tick_until(const std::function<bool()> &condition) {
    return eventually([&] {
      tick();
      return condition();
    });
  }
  /// Why the run is over here: one line, said once.
  std::string over() {
    BOOST_REQUIRE_EQUAL(supervisor.got<run_over>().size(), 1);
    const auto &why = supervisor.got<run_over>()[0].failure;
    BOOST_TEST(why.find('\n') == std::string::npos);
    return why;
  }
};

} // namespace millrace::test
