// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/step.hpp"

#include <map>
#include <set>

#include "schema/episode.hpp"

namespace millrace {

namespace {

void enter_fates(const step_bins &bins, std::span<ready_group *const> groups) {
  auto sample_at = [&](std::size_t i) -> sample_record & {
    const auto place = bins.places[i];
    return groups[place.group]->samples[place.sample];
  };
  for (const auto &rank : bins.plan.ranks)
    for (const auto &batch : rank)
      if (!batch.dummy)
        for (const auto &piece : batch.pieces) {
          auto &sample = sample_at(piece.sample);
          sample.outcome = sample_record::fate::packed;
          sample.kept = piece.tokens;
        }
  for (auto i : bins.plan.dropped)
    sample_at(i).outcome = sample_record::fate::cut;
  for (const auto &[i, reason] : bins.plan.rejected)
    sample_at(i).outcome = sample_record::fate::rejected;
}

} // namespace

result<step_bins> plan_groups(std::span<ready_group *const> groups, const plan_config &config) {
  step_bins out;
  std::vector<sample_shape> shapes;
  for (std::uint32_t g = 0; g < groups.size(); ++g)
    for (std::uint32_t s = 0; s < groups[g]->samples.size(); ++s)
      if (groups[g]->samples[s].outcome != sample_record::fate::stale) {
        out.places.push_back({g, s});
        shapes.push_back(groups[g]->shapes[s]);
      }
  auto plan = plan_step(shapes, config);
  if (!plan)
    return tl::unexpected(std::move(plan).error());
  out.plan = std::move(*plan);
  MILLRACE_TRY(check_plan(out.plan, config));
  enter_fates(out, groups);
  return out;
}

encoded_bin encode_bin(const step_bins &bins, std::span<const ready_group *const> groups,
                       std::uint64_t step, std::uint32_t rank, std::uint32_t index) {
  const auto &batch = bins.plan.ranks[rank][index];
  encoded_bin out;
  std::map<std::uint32_t, std::uint32_t> number_of; // group of the step -> group of the bin
  std::vector<wire::Piece> pieces;
  std::set<std::pair<std::uint32_t, std::uint32_t>> episodes; // group, episode
  for (const auto &piece : batch.pieces) {
    const auto place = bins.places[piece.sample];
    const auto [at, is_new] =
        number_of.emplace(place.group, static_cast<std::uint32_t>(out.groups.size()));
    if (is_new)
      out.groups.push_back(place.group);
    const auto &sample = groups[place.group]->samples[place.sample];
    if (episodes.emplace(place.group, sample.episode).second)
      out.source_bytes += groups[place.group]->header->episodes()->Get(sample.episode)->bytes();
    pieces.emplace_back(at->second, sample.episode, sample.trace, sample.branch, piece.tokens,
                        piece.images);
  }
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<wire::GroupRef>> refs;
  for (auto g : out.groups) {
    const auto &header = *groups[g]->header;
    const auto key = create_key(builder, key_of(*header.key()));
    const auto source =
        builder.CreateString(text_of(header.source()).data(), text_of(header.source()).size());
    refs.push_back(wire::CreateGroupRef(builder, key, source, header.ordinal()));
  }
  const auto refs_at = builder.CreateVector(refs);
  const auto pieces_at = builder.CreateVectorOfStructs(pieces.data(), pieces.size());
  const auto root = wire::CreateBinPlan(builder, step, rank, index, batch.dummy, batch.padding,
                                        refs_at, pieces_at);
  out.plan = finish_body<wire::BinPlan>(builder, root);
  return out;
}

} // namespace millrace
