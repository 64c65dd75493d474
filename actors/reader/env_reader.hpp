// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/group_set.hpp"
#include "actors/interfaces.hpp"
#include "actors/leader.hpp"
#include "actors/reader/group_table.hpp"
#include "actors/reader/quarantine.hpp"
#include "actors/reader/record_source.hpp"
#include "actors/run_counters.hpp"

namespace millrace {

/// What an environment demands of its episodes beside what all of them must be (element_limits).
struct env_demands {
  std::optional<bool> frozen{}; ///< a frozen model sampled them, or none did; nothing: either
  bool hints = false;           ///< their traces have hints
};
struct door_demands {
  std::map<std::string, env_demands, std::less<>> by_env;
  env_demands other; ///< of an environment that is not in `by_env`
};

/// What one env reader is told.
struct env_reader_options {
  std::uint32_t index = 0; ///< takes the groups with ordinal mod count = index
  std::uint32_t count = 1;
  std::uint64_t memory_limit = UINT64_MAX; ///< bytes held above which it reads only when hungry
  std::uint32_t vocab_size = 0;            ///< ids must be below it
  double pace = 0;   ///< groups a second over all readers; 0: as fast as the permits allow
  group_sizes sizes; ///< what the config says of them
  door_demands demands;
};

/// Whom an env reader talks to.
struct env_reader_peers {
  std::vector<peer> assemblers; ///< to begin with
  peer planner;
  peer supervisor;
};

/// Reads a source and sends its episodes to assemblers: the door, where every element is checked
/// once.
///
///                permit, room                   no more records
///     reading <-------------- waiting    reading ----------------> ended
///        | no permit, no room     ^
///        +------------------------+
///
/// All frames of a group go to one assembler, that with the most room when the group begins, until
/// the planner says that the group is settled, or the assembler is gone: then everything that was
/// sent of the group goes to another. Until then it also sends it again when the planner wants it
/// for a step that has to be made again. What the assembler has in its journal is let go of; from
/// then on the group stays with that assembler, and waits for it if it is gone. A reader that
/// starts again reads from the first record on, and sends nothing of groups that are settled. What
/// fails a check is rejected: it goes to the quarantine file, and to the assembler as a refused
/// episode if the record says which episode it was.
class env_reader : public stage_actor {
public:
  env_reader(caf::actor_config &config, const actor_context &context, env_reader_options options,
             std::unique_ptr<record_source> source, env_reader_peers peers,
             std::shared_ptr<run_counters> counters, std::shared_ptr<quarantine> refused);

  caf::behavior make_behavior() override;
  /// Lets go of other actors, who may hold this one: a ring would never be destroyed.
  void on_exit() override;

private:
  enum class state : std::uint8_t { reading, waiting, ended };
  enum class step : std::uint8_t { taken, blocked, finished };

  void read(const read_more &);
  void take_permit(const permit &in);
  void take_settled(const groups_settled &in);
  void take_hunger(const hunger &in);
  void take_progress(const planner_progress &in);
  void take_up(const peer_up &in);
  void take_draining(const peer_draining &in);
  void take_down(const peer_down &in);
  void take_room(const room_came &);
  void look_again(const look_for_room &);
  void take_hello(const planner_hello &in);
  void take_wanted(const groups_wanted &in);
  void take_safe(const messages_safe &in);
  void send_again(group_table::group &group, group_table::wish wish);

  step read_one();
  void end_of_data();
  step take_frame(const record &what);
  step take_sealed(const record &what);
  void take_size(const record &what);
  bool may_begin_next();
  template <class Check>
  step take(const record &what, const wire::EpisodeFrame &table, bool parsed,
            Check &&check_and_send);
  step admit(group_table::group &group);
  step begin(group_table::group &group);
  bool has_room(const group_table::group &group);
  peer pick_assembler();
  peer assembler_for(const group_table::group &group);
  void let_go_of(group_table::group &group, const std::set<safe_message> &safe, const peer &home);
  void settle(group_table::group &group);
  template <class Message> void pass_on(group_table::group &group, Message what);
  void move_to_another(group_table::group &group);
  void send_kept(const group_table::group &group);
  void try_again();
  void wait_for(std::string_view what, std::string_view on);
  void wait_for_permit(std::uint64_t ordinal);
  bool mine(const group_table::group &group) const;
  element_limits demands_on(const wire::EpisodeFrame &frame) const;
  status agree_on_size(group_table::group &group, std::uint32_t size);
  static bool is_surplus(const group_table::group &group, std::string_view episode);
  void refuse_known(const record &what, group_table::group &group, const wire::EpisodeFrame &table,
                    const error &why);
  void refuse_surplus(const record &what, group_table::group &group, std::string_view episode);
  step refuse(const record &what, const error &why);
  step refuse_unnamed(const record &what, const error &why);
  void write_refusal(const record &what, std::string_view group, std::string_view episode,
                     std::string_view reason);

  const env_reader_options options_;
  const std::unique_ptr<record_source> source_;
  const env_reader_peers peers_;
  leader planner_{peers_.planner};
  struct assembler_state {
    peer who;
    bool draining = false; ///< takes no new groups
  };
  std::vector<assembler_state> assemblers_;
  std::shared_ptr<run_counters> counters_;
  std::shared_ptr<quarantine> refused_;

  state state_ = state::reading;
  group_table groups_;
  std::optional<record> held_; ///< begins a group that has no permit yet, or must wait for the pace
  std::uint64_t permitted_below_ = 0;
  std::size_t next_assembler_ = 0;
  /// Groups of which no record has been read yet, and what they are.
  group_set settled_;
  group_set released_;
  std::map<group_ref, group_table::wish> wanted_;
  planner_progress progress_;
  bool hungry_ = false;  ///< the planner is
  bool looking_ = false; ///< a look_for_room is on its way
  std::uint64_t size_conflicts_ = 0;
  std::chrono::steady_clock::time_point next_group_{};
};

} // namespace millrace
