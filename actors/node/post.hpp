// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/node/codec.hpp"
#include "actors/node/host_messages.hpp"
#include "actors/pipeline.hpp"
#include "actors/trainer/feed_desks.hpp"
#include "transport/hub.hpp"

namespace millrace {

/// What a process says of itself came from another process. To the host or the directory actor.
struct host_mail {
  process_identity from;
  host_parcel parcel;
};

/// A tool's question. To the directory actor; answered through post::answer.
struct tool_mail {
  request_id request;
  host_parcel parcel;
};

/// A link to a process came up or went down. To the host actor.
struct link_event {
  std::string process;
  std::uint64_t incarnation = 0;
  link_state state = link_state::down;
  std::string why;
};

class linked_peer;

/// The post office of a process: gives a `peer` for every name, here or elsewhere, and brings what
/// arrives to its actor. Owns the hub. Peers of other processes may be asked for, and sent to,
/// before the directory has said where they are: what is sent waits.
/// Thread: any. Owner: shared by the peers that it gave; close() ends it.
class post final : public hub_listener, public std::enable_shared_from_this<post> {
public:
  post(caf::actor_system &system, const actor_context &context,
       std::shared_ptr<memory_meter> memory)
      : system_(system), context_(context), memory_(std::move(memory)) {}

  /// Who answers trainers in Python. Before open().
  void seat(std::shared_ptr<feed_desks> desks);

  /// Binds the hub. Errors: those of hub::start.
  status open(hub_options options);

  /// Who gets what is not for a stage. Before open().
  struct staff {
    caf::actor host;       ///< host_mail, link_event
    caf::actor directory;  ///< host_mail, tool_mail; none: tools are told so
    caf::actor supervisor; ///< run_failed of what cannot be read
  };
  void employ(staff who);
  /// Actors of this process. Those of stages are told of room_came.
  void add_local(const contact &who);

  /// The actor of this id. Incarnation 0: whichever comes to have that name.
  peer find(const peer_id &id);

  /// Says where a process is: what waits for its actors leaves. Again: nothing new.
  void learn(const process_entry &entry);
  /// The link to a known process; opened, if it is not.
  std::optional<link_id> link_to(const std::string &process);
  bool has_link(const std::string &process) const;
  /// The process is gone: nothing is kept for it.
  /// @returns whether there was a link to it: then that incarnation can not be learnt again.
  bool forget(const std::string &process, std::uint64_t incarnation);

  /// To a process by its name; ignored if it is not known.
  void send(const std::string &process, const host_parcel &what);
  /// To an actor's name in a process.
  void send(const std::string &process, const std::string &actor, const parcel &what);
  void answer(request_id request, const host_parcel &what);
  void answer(request_id request, message parts);

  /// Where others reach this process. After open().
  const std::string &endpoint() const noexcept { return hub_->endpoint(); }
  hub_stats stats() const { return hub_->stats(); }
  void set_hungry(bool hungry) { hub_->set_hungry(hungry); }

  /// Delivers what is queued until the deadline, then ends all links.
  std::vector<undelivered> close(std::chrono::milliseconds deadline);

private:
  friend class linked_peer;

  void received(const process_identity &from, message parts) override;
  void asked(request_id request, message parts) override;
  void link_changed(link_id link, link_state state, const std::string &why) override;
  void room_came(link_id link) override;

  struct link_entry {
    link_target target;
    link_id link = 0; ///< 0: not opened
  };

  std::shared_ptr<linked_peer> remote(const peer_id &id);
  void take_host_message(const process_identity &from, const message &parts);
  void drop(link_id link);
  void complain(const process_identity &from, const error &why);

  caf::actor_system &system_;
  const actor_context context_;
  const std::shared_ptr<memory_meter> memory_;
  std::unique_ptr<hub> hub_;

  mutable std::mutex mutex_; ///< guards what follows
  std::shared_ptr<feed_desks> desks_;
  staff staff_;
  std::map<std::string, contact, std::less<>> local_;
  std::map<peer_id, std::shared_ptr<linked_peer>> remote_;
  std::map<std::string, link_entry, std::less<>> links_; ///< by process
  process_identity self_;
  std::map<link_id, std::pair<std::string, std::uint64_t>> process_of_;
  /// By process and incarnation: decodes what came, in its order, on a worker.
  std::map<std::pair<std::string, std::uint64_t>, caf::actor> inlets_;
  bool closed_ = false;
};

} // namespace millrace

MILLRACE_MESSAGE(millrace::host_mail)
MILLRACE_MESSAGE(millrace::tool_mail)
MILLRACE_MESSAGE(millrace::link_event)
