// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "actors/interfaces.hpp"
#include "runtime/caf.hpp"

namespace millrace::test {

/// An actor that behaves as a function says. (CAF's own spawn of a function without arguments
/// dereferences a null pointer.)
class function_actor : public caf::event_based_actor {
public:
  using function = std::function<caf::behavior(caf::event_based_actor *)>;

  function_actor(caf::actor_config &config, function behave)
      : caf::event_based_actor(config), behave_(std::move(behave)) {}
  caf::behavior make_behavior() override { return behave_(this); }

private:
  function behave_;
};

/// An actor system whose scheduler runs on the test's own thread, one message after the other.
class actor_world {
public:
  actor_world() : system_(configure(config_)) {}
  /// Lets the actors handle their ends: nobody else runs them.
  ~actor_world() { run(); }
  actor_world(const actor_world &) = delete;
  actor_world &operator=(const actor_world &) = delete;

  caf::actor_system &system() { return system_; }
  const actor_context &context() const { return context_; }

  /// Handles messages until there are none.
  void run() { scheduler().run(); }

  /// Ends an actor, and waits for it.
  void end(const caf::actor &whom) {
    caf::anon_send_exit(whom, caf::exit_reason::user_shutdown);
    run();
  }

  /// Lets what was sent with a delay arrive, and handles it.
  void pass_time() {
    scheduler().trigger_timeouts();
    run();
  }

  template <class Message> void tell(const caf::actor &whom, Message &&what) {
    caf::anon_send(whom, std::forward<Message>(what));
    run();
  }

  /// Sends a question and waits for its answer.
  template <class Answer, class Question> Answer ask(const caf::actor &whom, Question question) {
    auto box = std::make_shared<std::vector<Answer>>();
    system_.spawn<function_actor>([=](caf::event_based_actor *self) -> caf::behavior {
      self->request(whom, caf::infinite, question).then([box](const Answer &answer) {
        box->push_back(answer);
      });
      return {};
    });
    run();
    return box->at(0);
  }

private:
  static caf::actor_system_config &configure(caf::actor_system_config &config) {
    config.set("scheduler.policy", caf::atom("testing"));
    config.set("logger.verbosity", caf::atom("quiet"));
    return config;
  }
  caf::scheduler::test_coordinator &scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator &>(system_.scheduler());
  }

  caf::actor_system_config config_;
  actor_context context_;
  caf::actor_system system_;
};

/// Stands in for a peer: keeps every message of these types.
template <class... Messages> class probe {
public:
  explicit probe(actor_world &world) {
    actor_ = world.system().spawn<function_actor>(
        [box = box_](caf::event_based_actor *) -> caf::behavior {
          return {[box](const Messages &message) {
            std::get<std::vector<Messages>>(*box).push_back(message);
          }...};
        });
  }
  /// Messages may hold actors that hold this one: a ring would outlive the test.
  ~probe() {
    *box_ = {};
    caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown);
  }
  probe(const probe &) = delete;
  probe &operator=(const probe &) = delete;

  const caf::actor &actor() const { return actor_; }
  template <class Message> std::vector<Message> &got() {
    return std::get<std::vector<Message>>(*box_);
  }

private:
  std::shared_ptr<std::tuple<std::vector<Messages>...>> box_ =
      std::make_shared<std::tuple<std::vector<Messages>...>>();
  caf::actor actor_;
};

/// Ends an actor with the object.
class owned_actor {
public:
  explicit owned_actor(caf::actor actor) : actor_(std::move(actor)) {}
  ~owned_actor() { caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown); }
  owned_actor(const owned_actor &) = delete;
  owned_actor &operator=(const owned_actor &) = delete;
  operator const caf::actor &() const { return actor_; } // NOLINT: an actor in all but its end

private:
  caf::actor actor_;
};

/// An actor of this process under the name that it has in a run.
inline peer named(std::string name, const caf::actor &who) {
  return {peer_id{std::move(name), 0}, who};
}

} // namespace millrace::test
