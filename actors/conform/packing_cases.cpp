// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "actors/assembler/group_header.hpp"
#include "actors/conform/case_reader.hpp"
#include "actors/conform/cases.hpp"
#include "actors/conform/comparison.hpp"
#include "actors/conform/packing_sample.hpp"
#include "actors/packer/gather.hpp"
#include "actors/planner/sample_shape.hpp"
#include "actors/scorer/prune.hpp"
#include "actors/trainer/tensors.hpp"

namespace millrace {

namespace {

struct packing_case {
  plan_config config;
  std::vector<packing_sample> samples;
};

result<plan_config> read_params(const json::value &in) {
  std::int32_t seq_len = 0;
  std::int32_t pad = 0;
  std::int32_t ranks = 0;
  json::value cost = in;
  plan_config out;
  case_fields params(in);
  params.get("seq_len", seq_len);
  params.get("num_train_workers", ranks);
  params.get("pad_to_multiple_of", pad);
  params.get("cost", cost);
  MILLRACE_TRY(params.done());
  case_fields coefficients(cost);
  coefficients.get("linear", out.cost.linear);
  coefficients.get("quadratic", out.cost.quadratic);
  MILLRACE_TRY(coefficients.done());
  if (seq_len < 0 || pad < 0 || ranks < 0)
    return in.wrong("a negative length or number of ranks");
  out.seq_len = static_cast<std::uint32_t>(seq_len);
  out.pad_to_multiple_of = static_cast<std::uint32_t>(pad);
  out.ranks = static_cast<std::uint32_t>(ranks);
  return out;
}

result<packing_case> read_case(const json::value &test) {
  const auto params = test.get<json::value>("params");
  const auto samples = test.get<json::value>("samples");
  if (!params || !samples)
    return tl::unexpected(params ? samples.error() : params.error());
  const auto config = read_params(*params);
  if (!config)
    return tl::unexpected(config.error());
  const auto items = samples->items();
  if (!items)
    return tl::unexpected(items.error());
  packing_case out{.config = *config, .samples = {}};
  for (const auto &item : *items) {
    auto sample = read_packing_sample(item);
    if (!sample)
      return tl::unexpected(std::move(sample).error());
    out.samples.push_back(std::move(*sample));
  }
  return out;
}

/// The case on its way through the program: headers as the assembler makes them, the plan, and the
/// micro batches as the packer gathers them.
class packing_run {
public:
  explicit packing_run(const packing_case &test) : test_(test) {}

  status prepare() {
    for (const auto &sample : test_.samples) {
      auto made = make_packing_branch(sample);
      if (!made)
        return tl::unexpected(std::move(made).error());
      branches_.push_back(std::move(*made));
    }
    MILLRACE_TRY(make_header());
    return check_advantages(**header_, verdicts());
  }

  result<step_plan> plan() const {
    std::vector<sample_shape> shapes;
    for (std::size_t i = 0; i < branches_.size(); ++i)
      shapes.push_back(shape_of(branch_header_of(i)));
    auto plan = plan_step(shapes, test_.config);
    if (!plan)
      return plan;
    if (!plan->rejected.empty())
      return fail(errc::bad_value, "sample {}: {}", plan->rejected.front().sample,
                  plan->rejected.front().reason);
    MILLRACE_TRY(check_plan(*plan, test_.config));
    return plan;
  }

  status tensors(const micro_batch_plan &plan, std::uint32_t rank, std::uint32_t index,
                 micro_batch_tensors &out) const {
    bin work{.step = 1,
             .rank = rank,
             .index = index,
             .dummy = plan.dummy,
             .padding = plan.padding,
             .samples = {}};
    for (const auto &piece : plan.pieces)
      work.samples.push_back(source_of(piece));
    auto gathered = gather(work);
    if (!gathered)
      return tl::unexpected(std::move(gathered).error());
    const auto batch = micro_batch::parse(std::move(*gathered));
    if (!batch)
      return tl::unexpected(batch.error());
    MILLRACE_TRY(check_arrays(*batch));
    widen(*batch, out);
    return {};
  }

private:
  /// One episode with one trace and one branch for each sample.
  status make_header() {
    std::vector<episode_header> episodes(branches_.size());
    for (std::size_t i = 0; i < branches_.size(); ++i) {
      const auto &[bytes, shapes, nodes, path] = branches_[i];
      std::vector<node_shape> node_shapes;
      for (const auto &node : nodes)
        node_shapes.push_back(shape_of(node));
      auto branch = make_branch_header(nodes, node_shapes, path, test_.config.seq_len);
      if (!branch)
        return tl::unexpected(std::move(branch).error());
      episodes[i].id = std::to_string(i);
      episodes[i].traces.emplace_back().branches.push_back(std::move(*branch));
    }
    const group_place place{.key = {.run = "", .env = "case", .task = "case", .group = "case"},
                            .source = "case",
                            .ordinal = 0,
                            .size = static_cast<std::uint32_t>(episodes.size())};
    auto made = make_group_header(place, episodes);
    if (!made)
      return tl::unexpected(std::move(made).error());
    auto parsed = parse<wire::GroupHeader>(*made);
    if (!parsed)
      return tl::unexpected(std::move(parsed).error());
    header_ = std::move(*parsed);
    return {};
  }

  const wire::BranchHeader &branch_header_of(std::size_t sample) const {
    const auto at = static_cast<flatbuffers::uoffset_t>(sample);
    return *(**header_).episodes()->Get(at)->traces()->Get(0)->branches()->Get(0);
  }

  /// Nothing was scored or pruned: streams and advantages are those of the nodes.
  std::vector<trace_verdict> verdicts() const {
    std::vector<trace_verdict> out;
    for (std::uint32_t i = 0; i < branches_.size(); ++i) {
      const auto &sample = test_.samples[i];
      if (branches_[i].path.trainable > 0)
        out.push_back({.score = {.episode = i, .trace = 0, .advantage = std::nullopt},
                       .samples = {{.rl = sample.rl, .ce = sample.ce, .ref_kl = sample.ref_kl}}});
    }
    return out;
  }

  sample_source source_of(const planned_piece &piece) const {
    const auto &sample = test_.samples[piece.sample];
    const auto &branch = branches_[piece.sample];
    sample_source out;
    out.nodes = branch.nodes;
    out.path = &branch.path;
    out.tokens = piece.tokens;
    out.images = piece.images;
    out.rl = sample.rl;
    out.ce = sample.ce;
    out.ref_kl = sample.ref_kl;
    out.temperature = sample.temperatures.front();
    out.env = sample.env;
    return out;
  }

  const packing_case &test_;
  std::vector<packing_branch> branches_;
  std::optional<body<wire::GroupHeader>> header_;
};

void compare_array(comparison &to, const json::value &want, const array_tensor &got) {
  const auto read = read_array(want);
  if (!read)
    return to.differs(want, read.error().message);
  if (read->type != got.type)
    return to.differs(want,
                      fmt::format("dtype {}, expected {}", name_of(got.type), name_of(read->type)));
  if (read->shape != got.shape)
    return to.differs(want, "another shape");
  if (!std::ranges::equal(read->bytes.bytes(), got.bytes.values()))
    to.differs(want, "other bytes");
}

void compare_images(comparison &to, const json::value &want, const micro_batch_tensors &got) {
  const auto arrays = got.mm_kwargs();
  if (!to.present(want, !arrays.empty()))
    return;
  const auto members = want.members();
  if (!members || members->size() != arrays.size())
    return to.differs(want, fmt::format("{} arrays, expected another number", arrays.size()));
  for (const auto &[name, value] : *members) {
    const auto found = std::ranges::find(arrays, name, &array_tensor::name);
    if (found == arrays.end())
      return to.differs(value, "not there");
    compare_array(to, value, *found);
  }
}

void compare_streams(comparison &to, const json::value &want, const micro_batch_tensors &got) {
  const std::pair<std::string_view, const host_array<float> &> streams[] = {
      {"advantages", got.advantages},         {"inference_logprobs", got.inference_logprobs},
      {"temperatures", got.temperatures},     {"ref_logprobs", got.ref_logprobs},
      {"rl_weights", got.rl_weights},         {"ce_weights", got.ce_weights},
      {"ref_kl_weights", got.ref_kl_weights},
  };
  for (const auto &[name, values] : streams)
    if (const auto field = to.field(want, name))
      if (to.present(*field, values.has_value()))
        to.numbers(*field, values.values());
}

void compare_batch(comparison &to, const json::value &want, const micro_batch_tensors &got) {
  const std::pair<std::string_view, const host_array<std::int64_t> &> integers[] = {
      {"input_ids", got.input_ids},
      {"position_ids", got.position_ids},
      {"sequence_lengths", got.sequence_lengths},
      {"seq_lens", got.seq_lens},
      {"mm_token_type_ids", got.mm_token_type_ids},
  };
  for (const auto &[name, values] : integers)
    if (const auto field = to.field(want, name))
      if (to.present(*field, values.has_value()))
        to.integers(*field, values.values());
  if (const auto field = to.field(want, "loss_mask"))
    to.booleans(*field, got.loss_mask.values());
  compare_streams(to, want, got);
  if (const auto field = to.field(want, "padding"))
    to.number(*field, static_cast<double>(got.padding));
  if (const auto field = to.field(want, "env_names"))
    if (const auto names = to.items(*field, got.env_names.size()))
      for (std::size_t i = 0; i < names->size(); ++i)
        to.text((*names)[i], got.env_names[i]);
  if (const auto field = to.field(want, "routed_experts"))
    if (to.present(*field, got.routed_experts.has_value()))
      compare_array(to, *field, got.routed_experts);
  if (const auto field = to.field(want, "mm_kwargs"))
    compare_images(to, *field, got);
}

/// What differs; nothing if all is as expected.
result<std::string> compare_step(const packing_run &run, const step_plan &plan,
                                 const json::value &expected) {
  comparison to;
  micro_batch_tensors tensors;
  const auto ranks = to.items(expected, plan.ranks.size());
  for (std::uint32_t r = 0; ranks && r < plan.ranks.size(); ++r) {
    const auto batches = to.items((*ranks)[r], plan.ranks[r].size());
    for (std::uint32_t i = 0; batches && i < plan.ranks[r].size(); ++i) {
      MILLRACE_TRY(run.tensors(plan.ranks[r][i], r, i, tensors));
      compare_batch(to, (*batches)[i], tensors);
    }
  }
  return to.difference();
}

} // namespace

case_outcome run_packing_case(const json::value &test) {
  const auto input = read_case(test);
  if (!input)
    return case_outcome::fail(input.error().message);
  packing_run run(*input);
  const auto ready = run.prepare();
  const auto plan = ready ? run.plan() : tl::unexpected(ready.error());
  if (const auto error = test.field("expected_error"); error && *error)
    return plan ? case_outcome::fail("accepted, expected a rejection") : case_outcome::pass();
  if (!plan)
    return case_outcome::fail(plan.error().message);
  const auto expected = test.get<json::value>("expected");
  if (!expected)
    return case_outcome::fail(expected.error().message);
  auto difference = compare_step(run, *plan, *expected);
  if (!difference)
    return case_outcome::fail(difference.error().message);
  return difference->empty() ? case_outcome::pass() : case_outcome::fail(std::move(*difference));
}

} // namespace millrace
