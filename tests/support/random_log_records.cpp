// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_log_records.hpp"

#include <algorithm>
#include <tuple>

#include "schema/body.hpp"
#include "schema/episode_state.hpp"

namespace millrace::test {

namespace {

bool same(const frame &a, const frame &b) {
  return std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end());
}

bool same(const log_group &a, const log_group &b) {
  const auto all = [](const log_group &g) {
    return std::tie(g.ordinal, g.source, g.key, g.states, g.samples, g.cut_tokens, g.why,
                    g.gibberish, g.repetition, g.judged_for, g.longest_stale, g.overdue);
  };
  return all(a) == all(b);
}

bool same(const log_bin &a, const log_bin &b) {
  const auto all = [](const log_bin &bin) {
    return std::tie(bin.rank, bin.index, bin.digest, bin.source_bytes);
  };
  return all(a) == all(b) && same(a.plan, b.plan);
}

template <class T> bool same(const std::vector<T> &a, const std::vector<T> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const T &one, const T &other) { return same(one, other); });
}

bool same(const log_open &a, const log_open &b) {
  const auto all = [](const log_open &r) {
    return std::tie(r.run, r.folder, r.epoch, r.program, r.config_digest, r.source, r.ranks);
  };
  return all(a) == all(b);
}

bool same(const log_generation &a, const log_generation &b) {
  return a.generation == b.generation && a.next == b.next;
}

bool same(const log_commit &a, const log_commit &b) {
  const auto all = [](const log_commit &r) {
    return std::tie(r.step, r.digest, r.traces, r.samples, r.tokens, r.padding, r.dummies,
                    r.wire_bytes, r.staleness, r.kept_lengths);
  };
  return all(a) == all(b) && same(a.bins, b.bins) && same(a.groups, b.groups) &&
         same(a.annotations, b.annotations);
}

bool same(const log_settled &a, const log_settled &b) { return same(a.groups, b.groups); }

bool same(const log_scored &a, const log_scored &b) {
  const auto all = [](const log_scored &r) {
    return std::tie(r.ordinal, r.source, r.key, r.number, r.before, r.after);
  };
  return all(a) == all(b) && same(a.annotations, b.annotations);
}

bool same(const log_trained &a, const log_trained &b) {
  return std::tie(a.step, a.rl, a.ce, a.ref_kl) == std::tie(b.step, b.rl, b.ce, b.ref_kl);
}

bool same(const log_durable &a, const log_durable &b) { return a.step == b.step; }

bool same(const log_rolled_back &a, const log_rolled_back &b) {
  return std::tie(a.first, a.last, a.trained) == std::tie(b.first, b.last, b.trained);
}

} // namespace

std::string log_record_maker::text(std::uint32_t most) {
  std::string out(random_.below(most + 1), ' ');
  for (auto &c : out)
    c = static_cast<char>(random_.between('a', 'z'));
  return out;
}

digest128 log_record_maker::digest() {
  digest128 out;
  for (auto &byte : out.bytes)
    byte = static_cast<std::uint8_t>(random_.next());
  return out;
}

std::vector<std::uint8_t> log_record_maker::bytes() {
  std::vector<std::uint8_t> out(random_.below(30));
  for (auto &byte : out)
    byte = static_cast<std::uint8_t>(random_.next());
  return out;
}

log_group log_record_maker::group() {
  log_group out{number(), number32(), {text(), text(), text(), text()}, {}, {}, number(), text(),
                number(), number()};
  out.judged_for = number();
  out.longest_stale = number();
  out.overdue = random_.chance(50);
  out.states.resize(random_.below(9));
  for (auto &state : out.states)
    state = static_cast<std::uint8_t>(random_.below(episode_state_count));
  for (std::uint8_t state = 0; state < episode_state_count; ++state)
    if (random_.chance(20))
      out.samples.push_back({state, number(), number()});
  return out;
}

std::vector<log_group> log_record_maker::groups(std::uint32_t size) {
  std::vector<log_group> out;
  for (std::uint32_t i = 0; i < size; ++i)
    out.push_back(group());
  return out;
}

frame log_record_maker::annotations(const group_key &key) {
  flatbuffers::FlatBufferBuilder builder;
  const auto at = create_key(builder, key);
  const auto algorithm = builder.CreateString(text());
  wire::GroupAnnotationsBuilder table(builder);
  table.add_key(at);
  table.add_algorithm(algorithm);
  table.add_ordinal(number());
  return finish_body<wire::GroupAnnotations>(builder, table.Finish());
}

frame log_record_maker::plan(std::uint64_t step, std::uint32_t rank, std::uint32_t index) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<wire::Piece> pieces;
  for (auto i = random_.below(5); i > 0; --i)
    pieces.emplace_back(number32(), number32(), number32(), number32(), number32(), number32());
  const auto at = builder.CreateVectorOfStructs(pieces);
  wire::BinPlanBuilder table(builder);
  table.add_step(step);
  table.add_rank(rank);
  table.add_index(index);
  table.add_padding(number32());
  table.add_pieces(at);
  return finish_body<wire::BinPlan>(builder, table.Finish());
}

log_commit log_record_maker::commit(std::uint32_t bins, std::uint32_t groups_wanted) {
  log_commit out;
  out.step = count();
  out.digest = digest();
  for (std::uint32_t i = 0; i < bins; ++i)
    out.bins.push_back({i / 3, i % 3, digest(), number(), plan(out.step, i / 3, i % 3)});
  out.groups = groups(groups_wanted);
  for (const auto &group : out.groups)
    out.annotations.push_back(annotations(group.key));
  out.traces = number();
  out.samples = number();
  out.tokens = number();
  out.padding = number();
  out.dummies = number();
  out.wire_bytes = number();
  for (auto i = random_.below(4); i > 0; --i)
    out.staleness.push_back({number(), number()});
  out.kept_lengths = {number(), number(), number()};
  return out;
}

log_record log_record_maker::make(std::size_t kind) {
  const auto signed_number = [this] { return static_cast<std::int64_t>(number()); };
  switch (kind) {
  case 0:
    return log_open{text(), digest(), count(), text(), text(), text(), number32() / 2 + 1};
  case 1:
    return log_generation{count(), count()};
  case 2:
    return commit(random_.below(7), random_.below(4));
  case 3:
    return log_settled{groups(random_.below(4))};
  case 4:
    return log_scored{number(),
                      number32(),
                      fmt::format("k{}", text()),
                      count(),
                      bytes(),
                      bytes(),
                      annotations({text(), text(), text(), text()})};
  case 5:
    return log_trained{count(), signed_number(), signed_number(), signed_number()};
  case 6:
    return log_durable{count()};
  default:
    break;
  }
  const auto first = count();
  const auto last = first + number() / 2;
  return log_rolled_back{first, last, last - std::min(last, number())};
}

bool same(const log_record &a, const log_record &b) {
  if (a.index() != b.index())
    return false;
  return std::visit([&b]<class T>(const T &one) { return same(one, std::get<T>(b)); }, a);
}

} // namespace millrace::test
