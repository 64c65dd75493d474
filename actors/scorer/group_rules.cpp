// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/group_rules.hpp"

#include "schema/episode.hpp"

namespace millrace {

namespace {

std::string_view name_of(wire::EpisodeStatus status) {
  switch (status) {
  case wire::EpisodeStatus::Errored:
    return "errored";
  case wire::EpisodeStatus::Cancelled:
    return "was cancelled";
  case wire::EpisodeStatus::Rejected:
    return "was rejected";
  case wire::EpisodeStatus::Ok:
    break;
  }
  return "is ok";
}

} // namespace

std::optional<unscored_end> find_unscored_end(const wire::GroupHeader &group,
                                              group_scoring scoring) {
  const wire::EpisodeHeader *failed = nullptr;
  if (group.episodes() == nullptr)
    return std::nullopt;
  for (const auto *episode : *group.episodes()) {
    if (episode->status() == wire::EpisodeStatus::Cancelled &&
        episode->cancel_reason() == wire::CancelReason::Stale)
      return unscored_end{group_end::stale, fmt::format("episode '{}' was cancelled as stale",
                                                        text_of(episode->id()))};
    if (failed == nullptr && episode->status() != wire::EpisodeStatus::Ok)
      failed = episode;
  }
  if (failed == nullptr || scoring != group_scoring::unit)
    return std::nullopt;
  return unscored_end{group_end::dropped,
                      fmt::format("it is scored as a unit, and episode '{}' {}",
                                  text_of(failed->id()), name_of(failed->status()))};
}

} // namespace millrace
