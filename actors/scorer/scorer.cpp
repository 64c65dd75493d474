// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/scorer.hpp"

#include <utility>

#include "actors/scorer/annotate.hpp"

namespace millrace {

scorer::scorer(caf::actor_config &config, const actor_context &context, std::string name,
               std::shared_ptr<const run_config> settings, scorer_peers peers,
               std::shared_ptr<run_counters> counters)
    : stage_actor(config, context, std::move(name)), settings_(std::move(settings)),
      peers_(std::move(peers)), counters_(std::move(counters)) {}

caf::behavior scorer::make_behavior() {
  return {on(&scorer::score), on(&scorer::take_down), on(&scorer::finish)};
}

void scorer::score(const group_complete &in) {
  const stage_meter::timer timer(counters_->stages.score);
  ++counters_->groups_scored;
  auto annotations = [&]() -> result<frame> {
    auto header = parse<wire::GroupHeader>(in.header);
    if (!header)
      return tl::unexpected(std::move(header).error());
    return annotate(*header, settings_->env(text_of((*header)->key()->env())));
  }();
  if (!annotations) {
    tell(peers_.planner, group_tombstone{in.group, in.header, tombstone_reason::unscored,
                                         annotations.error().message, in.assembler});
    return;
  }
  counters_->stages.score.bytes += in.header.size() + annotations->size();
  tell(peers_.planner, group_scored{in.group, in.header, std::move(*annotations), in.assembler});
}

/// Nothing is under way between two messages.
void scorer::take_down(const peer_down &) {}

/// It has answered all that came before this; what still comes is asked of another.
void scorer::finish(const drain &) { tell(peers_.supervisor, drained{name()}); }

} // namespace millrace
