// SPDX-License-Identifier: Apache-2.0
#pragma once

// The only file that includes CAF, so that a move from 0.17.6 to 1.x touches one place.
#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "runtime/result.hpp"
#include "runtime/schedule_fuzzer.hpp"
#include "runtime/turn_meter.hpp"

/// Marks a struct of actors/interfaces.hpp as a message between actors of one process. Stands at
/// global scope.
#define MILLRACE_MESSAGE(type) CAF_ALLOW_UNSAFE_MESSAGE_TYPE(type)

namespace millrace {

/// What every actor of a process shares. Thread: any; its parts are safe by themselves.
struct actor_context {
  /// Of this process: larger for a later start under the same name. 0: nobody else is there.
  std::uint64_t incarnation = 0;
  std::shared_ptr<turn_meter> turns = std::make_shared<turn_meter>();
  std::shared_ptr<schedule_fuzzer> fuzzer; ///< null but in tests of the schedule
};

/// Base of every actor: names it, times its handlers, and ends the process on a message that it
/// does not know, since that is a bug in the wiring.
class stage_actor : public caf::event_based_actor {
public:
  stage_actor(caf::actor_config &config, const actor_context &context, std::string name)
      : caf::event_based_actor(config), context_(context), name_(std::move(name)) {
    set_default_handler(
        [](caf::scheduled_actor *self, const caf::message_view &view) -> caf::result<caf::message> {
          MILLRACE_ASSERT(false, "{} got a message that it does not know: {}", self->name(),
                          caf::to_string(view.content()));
          return caf::make_error(caf::sec::unexpected_message);
        });
  }

  const char *name() const override { return name_.c_str(); }
  const actor_context &context() const noexcept { return context_; }

protected:
  /// The handler of one message: on(&planner::take_scored).
  template <class Self, class Message> auto on(void (Self::*handler)(const Message &)) {
    return [this, handler](const Message &in) {
      if (context_.fuzzer)
        context_.fuzzer->perturb();
      const turn_meter::turn turn(*context_.turns, name_);
      (static_cast<Self *>(this)->*handler)(in);
    };
  }

  /// The handler of a message that is answered: the result goes back to who asked.
  template <class Self, class Message, class Answer>
  auto on(Answer (Self::*handler)(const Message &)) {
    return [this, handler](const Message &in) {
      if (context_.fuzzer)
        context_.fuzzer->perturb();
      const turn_meter::turn turn(*context_.turns, name_);
      return (static_cast<Self *>(this)->*handler)(in);
    };
  }

private:
  actor_context context_;
  std::string name_;
};

} // namespace millrace
