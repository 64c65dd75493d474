// SPDX-License-Identifier: Apache-2.0
#include "actors/node/directory.hpp"

#include <thread>

#include "actors/node/host.hpp"
#include "tests/unit/actors/node/host_fixture.hpp"
#include "transport/client.hpp"

namespace millrace::test {
namespace {

/// The directory actor, and processes that are hubs which keep what comes.
struct directory_fixture : post_fixture {
  std::optional<owned_actor> subject;
  std::unique_ptr<host> a = listening("scorer-1", 7);
  std::unique_ptr<host> b = listening("packer-1", 8);

  directory_fixture() : post_fixture("directory") { begin(std::chrono::hours(1)); }
  void begin(std::chrono::milliseconds lease) {
    subject.emplace(world.system().spawn<directory>(
        world.context(), directory_options{.run = "run", .incarnation = 5, .lease = lease},
        office));
    world.run();
  }
  void news(const process_entry &of, const process_identity &from) {
    world.tell(*subject, host_mail{from, host_parcel{process_alive{of, {}}}});
  }
  void news(const process_entry &of) {
    process_identity from;
    from.process = of.process;
    from.incarnation = of.incarnation;
    news(of, from);
  }
  process_entry scorer() const { return entry(role::scorer, "scorer-1", 7); }
  process_entry packer() const { return entry(role::packer, "packer-1", 8); }

  /// All entries that a process was told of, once so many messages have come.
  static lines told(host &who, std::size_t messages) {
    lines out;
    for (const auto &one : mail(who, messages)) {
      const auto &view = std::get<directory_view>(one.what);
      BOOST_TEST(view.directory == 5U);
      for (const auto &each : view.entries)
        out.push_back(fmt::format("{} {}", each.process, static_cast<unsigned>(each.state)));
    }
    return out;
  }
};

BOOST_FIXTURE_TEST_SUITE(directory_suite, directory_fixture)

// 0: alive, 1: draining, 2: left, 3: gone.
BOOST_AUTO_TEST_CASE(a_process_that_registers_hears_of_all_and_all_hear_of_it) {
  news(scorer());
  news(packer());
  // The first hears the whole view and the change that it is itself.
  BOOST_TEST((told(*a, 3) == lines{"scorer-1 0", "scorer-1 0", "packer-1 0"}));
  BOOST_TEST((told(*b, 2) == lines{"packer-1 0", "scorer-1 0", "packer-1 0"}));
}

BOOST_AUTO_TEST_CASE(a_lease_that_is_renewed_is_no_news) {
  news(scorer());
  news(scorer());
  news(packer());
  BOOST_TEST((told(*a, 3) == lines{"scorer-1 0", "scorer-1 0", "packer-1 0"}));
}

BOOST_AUTO_TEST_CASE(a_process_that_leaves_is_told_of) {
  news(scorer());
  news(packer());
  process_identity from;
  from.process = "packer-1";
  world.tell(*subject, host_mail{from, host_parcel{process_leaves{"packer-1", 8}}});
  BOOST_TEST(told(*a, 4).back() == "packer-1 2");
}

BOOST_AUTO_TEST_CASE(a_process_that_is_not_heard_of_for_a_lease_is_told_of_as_gone) {
  begin(std::chrono::milliseconds(200));
  news(scorer());
  news(packer());
  lines heard;
  BOOST_TEST(eventually([&] {
    news(scorer());
    world.tell(*subject, check_leases{});
    heard = told(*a, 3);
    return heard.back() == "packer-1 3";
  }));
}

BOOST_AUTO_TEST_CASE(news_of_another_than_who_sends_them_are_ignored) {
  news(scorer());
  process_identity from;
  from.process = "scorer-1";
  from.incarnation = 7;
  news(packer(), from);
  news(entry(role::scorer, "scorer-1", 9), from);
  news(entry(role::scorer, "scorer-9", 10));
  BOOST_TEST((told(*a, 3) == lines{"scorer-1 0", "scorer-1 0", "scorer-9 0"}));
}

BOOST_AUTO_TEST_CASE(a_process_whose_actor_is_elsewhere_is_told_to_end_and_why) {
  news(scorer());
  auto second = packer();
  second.actors = {{role::scorer, "scorer-1"}};
  news(second);
  const auto answer = mail(*b, 1).at(0);
  BOOST_TEST(std::get<end_run>(answer.what).failure.find("--name") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_process_that_others_gave_up_is_told_to_start_again) {
  news(scorer());
  news(packer());
  process_identity from;
  from.process = "packer-1";
  world.tell(*subject, host_mail{from, host_parcel{process_lost{"scorer-1", 7}}});
  news(scorer());
  const auto last = mail(*a, 4).back();
  BOOST_TEST(std::get<end_run>(last.what).restart);
}

// Its links refuse it: they know the later one.
BOOST_AUTO_TEST_CASE(late_words_of_an_earlier_incarnation_do_not_take_its_name_back) {
  news(scorer());
  news(entry(role::scorer, "scorer-1", 6));
  news(packer());
  BOOST_TEST(told(*a, 3).back() == "packer-1 0");
}

BOOST_AUTO_TEST_SUITE_END()

/// A process of a run, with all that is real but its stages.
class node {
public:
  node(const temporary_folder &folder, const std::string &process, std::uint64_t incarnation,
       role what, bool with_directory)
      : folder_(folder.path()), self_(system_) {
    context_.incarnation = incarnation;
    office_ = std::make_shared<post>(system_, context_, std::make_shared<memory_meter>());
    auto options = some_options(process, address(process));
    options.self.incarnation = incarnation;
    BOOST_REQUIRE(office_->open(options));
    const auto me = caf::actor_cast<caf::actor>(self_);
    const contact stage{what, peer({process, incarnation}, me)};
    if (with_directory)
      directory_ = system_.spawn<directory>(
          context_, directory_options{.run = "run", .incarnation = incarnation, .lease = lease},
          office_);
    host_options about;
    about.entry = {process, incarnation, office_->endpoint(), "", {{what, process}}, {}};
    about.directory_process = "directory";
    about.directory_endpoint = address("directory");
    about.lease = lease;
    about.status = [] { return process_status{}; };
    about.has_directory = with_directory;
    host_ =
        system_.spawn<millrace::host>(context_, about, office_, std::vector{stage}, directory_, me);
    office_->add_local(stage);
    office_->employ({host_, directory_, me});
    if (!with_directory) {
      office_->learn({"directory", 0, address("directory"), "", {}, {}});
      office_->link_to("directory");
    }
  }
  ~node() {
    office_->close(std::chrono::milliseconds(500));
    for (const auto &actor : {host_, directory_})
      if (actor)
        caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }
  node(const node &) = delete;
  node &operator=(const node &) = delete;

  /// The next message of this kind.
  template <class Message> Message next() {
    std::optional<Message> got;
    const auto end = std::chrono::steady_clock::now() + long_enough;
    while (!got && std::chrono::steady_clock::now() < end)
      self_->receive([&](const Message &in) { got = in; },
                     caf::after(std::chrono::milliseconds(100)) >> [] {});
    BOOST_REQUIRE_MESSAGE(got, "nothing has come");
    return *got;
  }
  void leave() {
    self_->request(host_, caf::infinite, leave_run{{"", "{}"}, false})
        .receive([](const has_left &) {}, [](const caf::error &) {});
  }
  std::string address(const std::string &process) const {
    return "ipc://" + (folder_ / (process + ".sock")).string();
  }

  static constexpr std::chrono::milliseconds lease{2000};

private:
  const std::filesystem::path folder_;
  std::shared_ptr<post> office_; ///< outlives the actors that read for it
  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  caf::scoped_actor self_;
  actor_context context_;
  caf::actor directory_;
  caf::actor host_;
};

struct run_fixture {
  temporary_folder folder;
  std::optional<node> first;

  run_fixture() { start_directory(5); }
  void start_directory(std::uint64_t incarnation) {
    first.reset();
    first.emplace(folder, "directory", incarnation, role::assembler, true);
  }
  tool_answer answer_to(const host_parcel &question) {
    const auto got = ask(first->address("directory"), "", std::nullopt, "run", encode(question),
                         std::chrono::seconds(10));
    BOOST_REQUIRE(got);
    return std::get<tool_answer>(decode_host(*got).value().what);
  }
};

BOOST_FIXTURE_TEST_SUITE(processes_of_a_run, run_fixture)

BOOST_AUTO_TEST_CASE(a_process_registers_works_and_leaves) {
  std::optional<node> scorer;
  scorer.emplace(folder, "scorer-1", 7, role::scorer, false);
  const auto up = first->next<peer_up>();
  BOOST_TEST(up.who.id().name == "scorer-1");
  BOOST_TEST(up.who.id().incarnation == 7U);
  tell(up.who, hunger{true});
  BOOST_TEST(scorer->next<hunger>().hungry);
  scorer->leave();
  const auto down = first->next<peer_down>();
  BOOST_TEST((down.who == up.who));
  BOOST_TEST(down.why == "left");
}

BOOST_AUTO_TEST_CASE(a_process_that_starts_again_is_down_and_up) {
  std::optional<node> scorer;
  scorer.emplace(folder, "scorer-1", 7, role::scorer, false);
  first->next<peer_up>();
  scorer.reset();
  scorer.emplace(folder, "scorer-1", 8, role::scorer, false);
  BOOST_TEST(first->next<peer_down>().who.id().incarnation == 7U);
  BOOST_TEST(first->next<peer_up>().who.id().incarnation == 8U);
}

BOOST_AUTO_TEST_CASE(a_process_that_dies_is_down_after_its_lease) {
  {
    const node scorer(folder, "scorer-1", 7, role::scorer, false);
    first->next<peer_up>();
  }
  BOOST_TEST(first->next<peer_down>().why.starts_with("lost"));
}

BOOST_AUTO_TEST_CASE(a_directory_that_is_started_again_hears_of_all) {
  const node scorer(folder, "scorer-1", 7, role::scorer, false);
  first->next<peer_up>();
  start_directory(6);
  BOOST_TEST(first->next<peer_up>().who.id().name == "scorer-1");
}

BOOST_AUTO_TEST_CASE(a_tool_drains_one_of_two_by_its_name) {
  node scorer(folder, "scorer-1", 7, role::scorer, false);
  node other(folder, "scorer-2", 8, role::scorer, false);
  first->next<peer_up>();
  first->next<peer_up>();
  BOOST_TEST(!answer_to(host_parcel{drain_question{"scorer-3"}}).ok);
  BOOST_TEST(answer_to(host_parcel{drain_question{"scorer-1"}}).ok);
  scorer.next<drain>();
  BOOST_TEST(first->next<peer_draining>().who.id().name == "scorer-1");
  BOOST_TEST(!answer_to(host_parcel{drain_question{"scorer-2"}}).ok); // the last one
}

BOOST_AUTO_TEST_CASE(a_tool_hears_who_is_there) {
  const node scorer(folder, "scorer-1", 7, role::scorer, false);
  first->next<peer_up>();
  const auto got = ask(first->address("directory"), "", std::nullopt, "run",
                       encode(host_parcel{status_question{}}), std::chrono::seconds(10));
  BOOST_REQUIRE(got);
  const auto answer = std::get<status_answer>(decode_host(*got).value().what);
  lines names;
  for (const auto &each : answer.processes)
    names.push_back(each.entry.process);
  BOOST_TEST((names == lines{"directory", "scorer-1"}));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
