// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/packer/bin_sources.hpp"
#include "actors/run_counters.hpp"

namespace millrace {

/// Gathers the bins that the planner gives it: fetches the episodes, once for each bin, encodes the
/// micro batch and sends it to the rank's feeder. Any number of packers work side by side.
class packer : public stage_actor {
public:
  packer(caf::actor_config &config, const actor_context &context, std::uint32_t index,
         caf::actor supervisor, std::shared_ptr<run_counters> counters);

  caf::behavior make_behavior() override;

private:
  struct job {
    body<wire::BinPlan> plan;
    caf::actor feeder;
    std::vector<fetched_group> groups;
    std::size_t missing = 0; ///< groups whose episodes have not come
  };

  void take_bin(const pack_bin &in);
  void gather_bin(const bin_fetched &in);
  status start(const pack_bin &in);
  void store(std::uint64_t id, std::size_t group, const std::vector<std::uint32_t> &members,
             const episodes_fetched &answer);
  void give_up(const error &why);

  const caf::actor supervisor_;
  std::shared_ptr<run_counters> counters_;
  std::map<std::uint64_t, job> jobs_;
  std::uint64_t next_job_ = 0;
};

} // namespace millrace
