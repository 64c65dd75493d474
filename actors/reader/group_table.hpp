// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/interfaces.hpp"

namespace millrace {

/// Episodes in a group, as the config says; 0: it does not.
struct group_sizes {
  std::map<std::string, std::uint32_t, std::less<>> by_env;
  std::uint32_t other = 0; ///< of an environment that is not in `by_env`
};

/// The groups of one source, in the order of their first records: what numbers groups and their
/// episodes. Every reader of a recording builds the same table, so n readers agree without talking.
class group_table {
public:
  /// What the planner says of a group that it wants again.
  struct wish {
    bool scored = false;
    planner_moment when;
  };
  struct group {
    group_ref ref;
    std::shared_ptr<const group_info> info;
    peer assembler; ///< pinned once the group has begun; none: nobody is there
    /// Assembler in whose journal something of it is, and nowhere else: the group stays there, also
    /// while it is gone. Empty: nothing of it is safe.
    std::string home;
    bool begun = false;
    bool settled = false;      ///< nobody needs its bytes any more
    bool released = false;     ///< in a committed step, which may have to be made again
    std::optional<wish> again; ///< the planner wanted it again: its first message says so
    /// What was sent of it and is not safe in a journal, until it is settled. Frames lie in the
    /// mapped recording.
    std::vector<parcel> kept;
    std::map<std::string, std::uint32_t, std::less<>> members; ///< by episode id
    /// Episode ids that the door refused, up to this attempt.
    std::map<std::string, std::uint32_t, std::less<>> rejected;
    /// Of those, the ones of which no record has parsed.
    std::set<std::string, std::less<>> unparsed;
  };

  /// @param sizes must agree with what the source says.
  group_table(std::string source, group_sizes sizes)
      : source_(std::move(source)), sizes_(std::move(sizes)) {}

  /// The group of this key; a new one gets the next ordinal.
  group &of(const group_key &key);
  std::uint64_t size() const noexcept { return by_ordinal_.size(); }

  /// The group with this ordinal; null if there is none.
  group *find(std::uint64_t ordinal);
  /// The groups that have begun, and whose assembler has to have them.
  std::vector<group *> open();
  /// The groups that have not begun.
  std::vector<group *> not_begun();

  /// The place of an episode in its group; a new id gets the next one.
  static std::uint32_t member_of(group &where, std::string_view episode);

  /// A frame or a record says that the group has `size` episodes; 0 says nothing.
  /// Errors: conflict, with both sizes.
  status learn_size(group &where, std::uint32_t size);

private:
  std::string source_;
  group_sizes sizes_;
  std::map<group_key, group> groups_;
  std::vector<group *> by_ordinal_;
};

} // namespace millrace
