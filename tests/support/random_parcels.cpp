// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_parcels.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include "tests/support/episodes.hpp"

namespace millrace::test {

namespace {

class silent_peer final : public remote_peer {
public:
  void send(parcel) override {}
  bool can_take() const override { return true; }
  std::int64_t room() const override { return 0; }
};

/// A body where parse() reads it without a copy: a builder aligns it to its widest field only.
template <class T>
frame aligned_body(flatbuffers::FlatBufferBuilder &builder, flatbuffers::Offset<T> root) {
  return frame::copy_of(finish_body<T>(builder, root).bytes());
}

} // namespace

peer some_peer(const peer_id &id) { return {id, std::make_shared<silent_peer>()}; }

std::uint64_t parcel_maker::number() {
  const auto value = random_();
  return value >> (random_() % 64); // of every length
}

std::size_t parcel_maker::pick(std::size_t low, std::size_t high) {
  return std::uniform_int_distribution<std::size_t>(low, high)(random_);
}

std::string parcel_maker::text(std::size_t most) {
  std::string out(pick(1, most), ' ');
  for (auto &c : out)
    c = static_cast<char>(pick(0, 127));
  return out;
}

digest128 parcel_maker::digest() {
  digest128 out;
  for (auto &byte : out.bytes)
    byte = static_cast<std::uint8_t>(random_());
  return out;
}

std::vector<std::uint8_t> parcel_maker::bytes() {
  std::vector<std::uint8_t> out(pick(0, 50));
  for (auto &byte : out)
    byte = static_cast<std::uint8_t>(random_());
  return out;
}

std::vector<group_ref> parcel_maker::groups() {
  std::vector<group_ref> out(pick(0, 5));
  for (auto &one : out)
    one = group();
  return out;
}

std::shared_ptr<const group_info> parcel_maker::info() {
  return std::make_shared<group_info>(
      group_info{{text(), text(), text(), text()}, text(), number32() % 1000});
}

peer parcel_maker::who() { return some_peer({text(), number()}); }

sealed_episode parcel_maker::episode() {
  auto frames = some_episode_in_two(text());
  if (pick(0, 3) == 0) // a frame that stays where it is
    frames[1].nodes[0].routed_experts = some_experts(5, 128, 128);
  return sealed(frames);
}

frame parcel_maker::header() {
  flatbuffers::FlatBufferBuilder builder;
  const auto key = create_key(builder, some_key(text()));
  const auto source = builder.CreateString(text());
  return aligned_body<wire::GroupHeader>(
      builder, wire::CreateGroupHeader(builder, key, source, number(), number32()));
}

frame parcel_maker::annotations() {
  flatbuffers::FlatBufferBuilder builder;
  const auto key = create_key(builder, some_key(text()));
  const auto source = builder.CreateString(text());
  return aligned_body<wire::GroupAnnotations>(
      builder, wire::CreateGroupAnnotations(builder, key, source, number()));
}

/// One function for each message, found by its type.
struct parcel_makers {
  parcel_maker &r;

  frame_arrived operator()(std::type_identity<frame_arrived>) {
    auto data = some_episode(r.text());
    data.nodes[0].routed_experts = some_experts(3);
    return {r.group(), r.info(), r.member(), parsed(data)};
  }
  episode_arrived operator()(std::type_identity<episode_arrived>) {
    return {r.group(), r.info(), r.member(), r.episode()};
  }
  episode_rejected operator()(std::type_identity<episode_rejected>) {
    return {r.group(), r.info(), r.member(), r.text(), r.number32(), r.text(300)};
  }
  group_sized operator()(std::type_identity<group_sized>) { return {r.group(), r.info()}; }
  source_ended operator()(std::type_identity<source_ended>) { return {r.number32(), r.number()}; }
  permit_wanted operator()(std::type_identity<permit_wanted>) { return {r.number32(), r.number()}; }
  permit operator()(std::type_identity<permit>) { return {r.number()}; }
  hunger operator()(std::type_identity<hunger>) { return {r.pick(0, 1) == 1}; }
  group_complete operator()(std::type_identity<group_complete>) {
    return {r.group(), r.header(), r.who(), r.pick(0, 1) == 0 ? peer() : r.who()};
  }
  group_scored operator()(std::type_identity<group_scored>) {
    group_scored out{r.group(), r.header(), r.annotations(), r.who(), {}};
    if (r.pick(0, 1) == 1)
      out.once = answer_link{r.text(), r.number(), r.bytes(), r.bytes()};
    return out;
  }
  score_wanted operator()(std::type_identity<score_wanted>) {
    return {r.group(), r.header(), r.text(), r.who(), r.who()};
  }
  score_turn operator()(std::type_identity<score_turn>) {
    return {r.group(), r.pick(0, 1) == 1, r.number(), r.bytes()};
  }
  group_tombstone operator()(std::type_identity<group_tombstone>) {
    const auto reason = static_cast<tombstone_reason>(
        r.pick(0, static_cast<std::uint32_t>(tombstone_reason::overdue)));
    return {r.group(), r.header(), reason, r.text(300), r.who()};
  }
  groups_received operator()(std::type_identity<groups_received>) { return {r.groups()}; }
  groups_settled operator()(std::type_identity<groups_settled>) {
    return {r.groups(), r.pick(0, 1) == 1, r.moment()};
  }
  pack_bin operator()(std::type_identity<pack_bin>) {
    pack_bin out;
    flatbuffers::FlatBufferBuilder builder;
    std::vector<flatbuffers::Offset<wire::GroupRef>> refs;
    for (auto n = r.pick(0, 3); n > 0; --n) {
      out.groups.push_back({r.group(), r.annotations(), r.who()});
      refs.push_back(wire::CreateGroupRef(builder, create_key(builder, some_key(r.text()))));
    }
    const auto list = builder.CreateVector(refs);
    out.plan =
        aligned_body<wire::BinPlan>(builder, wire::CreateBinPlan(builder, r.number(), r.number32(),
                                                                 r.number32(), false, 0, list));
    out.feeder = r.who();
    out.source_bytes = r.number();
    out.claim = r.claim();
    return out;
  }
  fetch_episodes operator()(std::type_identity<fetch_episodes>) {
    std::vector<std::uint32_t> members(r.pick(0, 5));
    std::generate(members.begin(), members.end(), [this] { return r.number32(); });
    return {r.group(), members, r.who(), r.number()};
  }
  episodes_fetched operator()(std::type_identity<episodes_fetched>) {
    episodes_fetched out{r.number(), r.group(), {}, {}};
    for (auto n = r.pick(0, 3); n > 0; --n)
      out.episodes.push_back(r.episode());
    if (out.episodes.empty())
      out.problem = r.text(300);
    return out;
  }
  micro_batch_ready operator()(std::type_identity<micro_batch_ready>) {
    return {r.bin(), r.number(), r.who()};
  }
  fetch_micro_batch operator()(std::type_identity<fetch_micro_batch>) { return {r.bin(), r.who()}; }
  micro_batch_packed operator()(std::type_identity<micro_batch_packed>) {
    flatbuffers::FlatBufferBuilder builder;
    const std::vector<std::int32_t> ids(r.pick(0, 100), r.pick(0, 1) == 1 ? 7 : 8);
    const auto list = builder.CreateVector(ids);
    wire::MicroBatchBuilder batch(builder);
    batch.add_input_ids(list);
    message parts{aligned_body<wire::MicroBatch>(builder, batch.Finish())};
    for (auto n = r.pick(0, 2); n > 0; --n)
      parts.push_back(bytes_of(std::vector<std::uint64_t>(r.pick(1, 9), r.number())));
    return {r.bin(), parts};
  }
  micro_batch_taken operator()(std::type_identity<micro_batch_taken>) { return {r.bin()}; }
  stage_step operator()(std::type_identity<stage_step>) {
    return {r.number(), r.member(), r.claim()};
  }
  step_staged operator()(std::type_identity<step_staged>) {
    step_staged out{r.number(), r.number32(), {}, r.number(), r.number()};
    for (auto n = r.pick(0, 4); n > 0; --n)
      out.digests.push_back({r.number32(), r.number32(), r.digest()});
    return out;
  }
  commit_step operator()(std::type_identity<commit_step>) {
    commit_step out{r.number(), r.digest(), r.claim(), {}};
    for (auto n = r.pick(0, 4); n > 0; --n)
      out.staleness.push_back({r.number(), r.number()});
    return out;
  }
  rank_notice operator()(std::type_identity<rank_notice>) { return {r.text(), r.text(300)}; }
  step_trained operator()(std::type_identity<step_trained>) {
    const auto some = [this] { return static_cast<std::int64_t>(r.random_()); };
    return {r.number(), r.number32(), {some(), some(), some()}};
  }
  run_failed operator()(std::type_identity<run_failed>) {
    return {r.text(), {static_cast<errc>(r.pick(1, 14)), r.text(300)}};
  }
  planner_hello operator()(std::type_identity<planner_hello>) {
    return {r.claim(), r.number(), r.pick(0, 1) == 0 ? peer() : r.who()};
  }
  planner_refused operator()(std::type_identity<planner_refused>) {
    return {r.claim(), r.text(300)};
  }
  rank_state operator()(std::type_identity<rank_state>) {
    const auto some = [this] { return static_cast<std::int64_t>(r.random_()); };
    rank_state out{r.number32(), r.number(), r.number(), r.number(),
                   {},           {},         r.number(), r.number()};
    for (auto n = r.pick(0, 3); n > 0; --n)
      out.committed.push_back({r.number(), r.digest()});
    for (auto n = r.pick(0, 3); n > 0; --n)
      out.trained.push_back({r.number(), {some(), some(), some()}});
    return out;
  }
  begin_generation operator()(std::type_identity<begin_generation>) {
    return {r.number(), r.number(), r.claim()};
  }
  end_generation operator()(std::type_identity<end_generation>) {
    return {r.number(), r.text(300), r.claim()};
  }
  steps_recorded operator()(std::type_identity<steps_recorded>) {
    return {r.number(), r.number(), r.claim()};
  }
  checkpoint_saved operator()(std::type_identity<checkpoint_saved>) {
    return {r.number32(), r.number()};
  }
  groups_wanted operator()(std::type_identity<groups_wanted>) {
    return {r.groups(), r.pick(0, 1) == 1, r.moment()};
  }
  finish_training operator()(std::type_identity<finish_training>) {
    return {r.number(), r.claim()};
  }
  planner_progress operator()(std::type_identity<planner_progress>) {
    return {r.number(), r.number(), r.number()};
  }
  group_again operator()(std::type_identity<group_again>) {
    return {r.group(), r.info(), r.pick(0, 1) == 1, r.moment()};
  }
  group_held operator()(std::type_identity<group_held>) { return {r.group(), r.who()}; }
  messages_safe operator()(std::type_identity<messages_safe>) {
    messages_safe out{{}, r.who()};
    for (auto n = r.pick(0, 4); n > 0; --n)
      out.messages.push_back({r.group(), r.member(), r.number32(), r.number32()});
    return out;
  }
};

namespace {

using alternatives = decltype(parcel::what);

template <class Message> parcel make_one(parcel_maker &maker) {
  return {parcel_makers{maker}(std::type_identity<Message>{})};
}

template <std::size_t... I> constexpr auto makers_of(std::index_sequence<I...>) {
  return std::array{&make_one<std::variant_alternative_t<I, alternatives>>...};
}

/// Members, so that each finds all others.
struct parcel_text {
  static std::string show(std::uint64_t value) { return std::to_string(value); }
  static std::string show(std::uint8_t value) { return std::to_string(unsigned{value}); }
  static std::string show(std::uint32_t value) { return std::to_string(value); }
  static std::string show(std::int64_t value) { return std::to_string(value); }
  static std::string show(bool value) { return value ? "true" : "false"; }
  static std::string show(tombstone_reason value) {
    return std::to_string(static_cast<int>(value));
  }
  static std::string show(errc value) { return std::string(to_string(value)); }
  static std::string show(const std::string &value) {
    return fmt::format("{}:{}", value.size(), value);
  }
  static std::string show(const digest128 &value) { return value.hex(); }
  static std::string show(const peer &value) {
    return fmt::format("{}/{}", show(value.id().name), value.id().incarnation);
  }
  static std::string show(const frame &value) {
    return fmt::format("{}+{}", static_cast<const void *>(value.data()), value.size());
  }
  static std::string show(const episode_frame &value) { return show(value.parts()); }
  static std::string show(const sealed_episode &value) { return show(value.parts()); }

  template <class... Fields> static std::string line(const Fields &...fields) {
    std::string out = "{";
    ((out += show(fields), out += ' '), ...);
    out += '}';
    return out;
  }

  // A field that is added to a message and forgotten here does not compile.
  static std::string show(const group_ref &in) {
    const auto &[ordinal, source] = in;
    return line(ordinal, source);
  }
  static std::string show(const planner_moment &in) {
    const auto &[epoch, number] = in;
    return line(epoch, number);
  }
  static std::string show(const bin_ref &in) {
    const auto &[step, rank, index, claim] = in;
    return line(step, rank, index, claim);
  }
  static std::string show(const micro_batch_digest &in) {
    const auto &[rank, index, digest] = in;
    return line(rank, index, digest);
  }
  static std::string show(const error &in) {
    const auto &[code, text] = in;
    return line(code, text);
  }
  static std::string show(const std::shared_ptr<const group_info> &in) {
    const auto &[key, source, size] = *in;
    const auto &[run, env, task, group] = key;
    return line(run, env, task, group, source, size);
  }
  static std::string show(const bin_group &in) {
    const auto &[group, annotations, assembler] = in;
    return line(group, annotations, assembler);
  }
  template <class T> static std::string show(const std::vector<T> &values) {
    std::string out = "[";
    for (const auto &value : values)
      out.append(show(value)).append(" ");
    out += ']';
    return out;
  }

  static std::string show(const frame_arrived &in) {
    const auto &[group, info, member, part] = in;
    return line(group, info, member, part);
  }
  static std::string show(const episode_arrived &in) {
    const auto &[group, info, member, episode] = in;
    return line(group, info, member, episode);
  }
  static std::string show(const episode_rejected &in) {
    const auto &[group, info, member, id, attempt, reason] = in;
    return line(group, info, member, id, attempt, reason);
  }
  static std::string show(const group_sized &in) {
    const auto &[group, info] = in;
    return line(group, info);
  }
  static std::string show(const source_ended &in) {
    const auto &[reader, groups] = in;
    return line(reader, groups);
  }
  static std::string show(const permit_wanted &in) {
    const auto &[reader, ordinal] = in;
    return line(reader, ordinal);
  }
  static std::string show(const permit &in) {
    const auto &[below] = in;
    return line(below);
  }
  static std::string show(const hunger &in) {
    const auto &[hungry] = in;
    return line(hungry);
  }
  static std::string show(const group_complete &in) {
    const auto &[group, header, assembler, planner] = in;
    return line(group, header, assembler, planner);
  }
  static std::string show(const group_scored &in) {
    const auto &[group, header, annotations, assembler, once] = in;
    const auto link = once.value_or(answer_link{"none", 0, {}, {}});
    return line(group, header, annotations, assembler, link.key, link.number, link.before,
                link.after);
  }
  static std::string show(const score_wanted &in) {
    const auto &[group, header, key, assembler, asker] = in;
    return line(group, header, key, assembler, asker);
  }
  static std::string show(const score_turn &in) {
    const auto &[group, scored, number, state] = in;
    return line(group, scored, number, state);
  }
  static std::string show(const group_tombstone &in) {
    const auto &[group, header, reason, why, assembler] = in;
    return line(group, header, reason, why, assembler);
  }
  static std::string show(const groups_received &in) {
    const auto &[groups] = in;
    return line(groups);
  }
  static std::string show(const groups_settled &in) {
    const auto &[groups, for_good, when] = in;
    return line(groups, for_good, when);
  }
  static std::string show(const pack_bin &in) {
    const auto &[plan, groups, feeder, source_bytes, claim] = in;
    return line(plan, groups, feeder, source_bytes, claim);
  }
  static std::string show(const fetch_episodes &in) {
    const auto &[group, members, packer, job] = in;
    return line(group, members, packer, job);
  }
  static std::string show(const episodes_fetched &in) {
    const auto &[job, group, episodes, problem] = in;
    return line(job, group, episodes, problem);
  }
  static std::string show(const micro_batch_ready &in) {
    const auto &[bin, bytes, packer] = in;
    return line(bin, bytes, packer);
  }
  static std::string show(const fetch_micro_batch &in) {
    const auto &[bin, feeder] = in;
    return line(bin, feeder);
  }
  static std::string show(const micro_batch_packed &in) {
    const auto &[bin, parts] = in;
    return line(bin, parts);
  }
  static std::string show(const micro_batch_taken &in) {
    const auto &[bin] = in;
    return line(bin);
  }
  static std::string show(const stage_step &in) {
    const auto &[step, micro_batches, claim] = in;
    return line(step, micro_batches, claim);
  }
  static std::string show(const step_staged &in) {
    const auto &[step, rank, digests, wire_bytes, epoch] = in;
    return line(step, rank, digests, wire_bytes, epoch);
  }
  static std::string show(const staleness_count &in) {
    const auto &[staleness, episodes] = in;
    return line(staleness, episodes);
  }
  static std::string show(const commit_step &in) {
    const auto &[step, step_digest, claim, staleness] = in;
    return line(step, step_digest, claim, staleness);
  }
  static std::string show(const rank_notice &in) {
    const auto &[key, value] = in;
    return line(key, value);
  }
  static std::string show(const step_trained &in) {
    const auto &[step, rank, totals] = in;
    return line(step, rank, totals.rl, totals.ce, totals.ref_kl);
  }
  static std::string show(const run_failed &in) {
    const auto &[who, what] = in;
    return line(who, what);
  }
  static std::string show(const planner_claim &in) {
    const auto &[folder, epoch] = in;
    return line(folder, epoch);
  }
  static std::string show(const step_digest_of &in) {
    const auto &[step, digest] = in;
    return line(step, digest);
  }
  static std::string show(const step_totals &in) {
    const auto &[step, totals] = in;
    return line(step, totals.rl, totals.ce, totals.ref_kl);
  }
  static std::string show(const planner_hello &in) {
    const auto &[claim, durable, planner] = in;
    return line(claim, durable, planner);
  }
  static std::string show(const planner_refused &in) {
    const auto &[claim, why] = in;
    return line(claim, why);
  }
  static std::string show(const rank_state &in) {
    const auto &[rank, epoch, generation, next, committed, trained, saved, trained_to] = in;
    return line(rank, epoch, generation, next, committed, trained, saved, trained_to);
  }
  static std::string show(const begin_generation &in) {
    const auto &[generation, next, claim] = in;
    return line(generation, next, claim);
  }
  static std::string show(const end_generation &in) {
    const auto &[generation, why, claim] = in;
    return line(generation, why, claim);
  }
  static std::string show(const steps_recorded &in) {
    const auto &[trained, durable, claim] = in;
    return line(trained, durable, claim);
  }
  static std::string show(const checkpoint_saved &in) {
    const auto &[rank, step] = in;
    return line(rank, step);
  }
  static std::string show(const groups_wanted &in) {
    const auto &[groups, scored, when] = in;
    return line(groups, scored, when);
  }
  static std::string show(const finish_training &in) {
    const auto &[step, claim] = in;
    return line(step, claim);
  }
  static std::string show(const planner_progress &in) {
    const auto &[version, step, backlog] = in;
    return line(version, step, backlog);
  }
  static std::string show(const group_again &in) {
    const auto &[group, info, scored, when] = in;
    return line(group, info, scored, when);
  }
  static std::string show(const safe_message &in) {
    const auto &[group, member, attempt, number] = in;
    return line(group, member, attempt, number);
  }
  static std::string show(const messages_safe &in) {
    const auto &[messages, assembler] = in;
    return line(messages, assembler);
  }
  static std::string show(const group_held &in) {
    const auto &[group, assembler] = in;
    return line(group, assembler);
  }
};

// The frames of a message, in order.
template <class T> message carried(const T &) { return {}; }
message carried(const frame_arrived &in) { return in.part.parts(); }
message carried(const episode_arrived &in) { return in.episode.parts(); }
message carried(const group_complete &in) { return {in.header}; }
message carried(const group_scored &in) { return {in.header, in.annotations}; }
message carried(const score_wanted &in) { return {in.header}; }
message carried(const group_tombstone &in) { return {in.header}; }
message carried(const micro_batch_packed &in) { return in.parts; }
message carried(const pack_bin &in) {
  message out{in.plan};
  for (const auto &group : in.groups)
    out.push_back(group.annotations);
  return out;
}
message carried(const episodes_fetched &in) {
  message out;
  for (const auto &episode : in.episodes)
    out.insert(out.end(), episode.parts().begin(), episode.parts().end());
  return out;
}

} // namespace

parcel parcel_maker::make(std::size_t kind) {
  static constexpr auto makers = makers_of(std::make_index_sequence<parcel_kinds>());
  return makers.at(kind)(*this);
}

std::string text_of(const parcel &what) {
  return std::visit([](const auto &in) { return parcel_text::show(in); }, what.what);
}

message frames_of(const parcel &what) {
  return std::visit([](const auto &in) { return carried(in); }, what.what);
}

} // namespace millrace::test
