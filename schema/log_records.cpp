// SPDX-License-Identifier: Apache-2.0
#include "schema/log_records.hpp"

#include <array>
#include <type_traits>
#include <utility>

#include "runtime/utf8.hpp"
#include "schema/episode_state.hpp"
#include "schema/log_record_check.hpp"
#include "schema/wire_digest.hpp"

namespace millrace {

namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

constexpr std::array<std::string_view, std::variant_size_v<log_record>> names{
    "open", "generation", "commit", "settled", "scored", "trained", "durable", "rolled_back"};

// ---- out

std::string_view why_of(const log_group &group) {
  return utf8_prefix(group.why, limits::text_bytes);
}

/// An upper bound of what a group takes in its body.
std::size_t bytes_of(const log_group &group) {
  return 512 + group.key.run.size() + group.key.env.size() + group.key.task.size() +
         group.key.group.size() + group.states.size() +
         group.samples.size() * sizeof(wire::LogSamples) + why_of(group).size();
}

/// The same of a whole record. Names are checked before.
template <class T> std::size_t bytes_of(const T &what) {
  std::size_t size = std::size_t{64} << 10;
  if constexpr (std::is_same_v<T, log_commit>)
    size += what.bins.size() * 128 + what.staleness.size() * sizeof(wire::LogStaleness);
  if constexpr (std::is_same_v<T, log_commit> || std::is_same_v<T, log_settled>)
    for (const auto &group : what.groups)
      size += bytes_of(group);
  if constexpr (std::is_same_v<T, log_scored>)
    size += what.before.size() + what.after.size();
  return size;
}

auto create_groups(FlatBufferBuilder &builder, const std::vector<log_group> &groups) {
  std::vector<Offset<wire::LogGroup>> out;
  out.reserve(groups.size());
  std::vector<wire::LogSamples> rows;
  for (const auto &group : groups) {
    rows.clear();
    for (const auto &row : group.samples)
      rows.emplace_back(row.state, row.samples, row.tokens);
    const wire::GroupPlace place(group.ordinal, group.source);
    const auto key = create_key(builder, group.key);
    const auto states = builder.CreateVector(group.states);
    const auto samples = builder.CreateVectorOfStructs(rows);
    const auto why = group.why.empty() ? 0 : builder.CreateString(why_of(group));
    out.push_back(wire::CreateLogGroup(builder, &place, key, states, samples, group.cut_tokens, why,
                                       group.gibberish, group.repetition, group.judged_for,
                                       group.longest_stale, group.overdue));
  }
  return builder.CreateVector(out);
}

auto create(FlatBufferBuilder &builder, message &, const log_open &in) {
  const auto run = builder.CreateString(in.run);
  const auto folder = digest_of(in.folder);
  const auto program = builder.CreateString(in.program);
  const auto config = builder.CreateString(in.config_digest);
  const auto source = builder.CreateString(in.source);
  return wire::CreateLogOpen(builder, run, &folder, in.epoch, program, config, source, in.ranks);
}

auto create(FlatBufferBuilder &builder, message &, const log_generation &in) {
  return wire::CreateLogGeneration(builder, in.generation, in.next);
}

wire::LogLengths lengths_of(const sample_lengths &in) {
  return {in.samples, in.tokens, in.longest};
}

auto create(FlatBufferBuilder &builder, message &parts, const log_commit &in) {
  std::vector<Offset<wire::LogBin>> bins;
  bins.reserve(in.bins.size());
  for (const auto &bin : in.bins) {
    const auto digest = digest_of(bin.digest);
    bins.push_back(wire::CreateLogBin(builder, bin.rank, bin.index, &digest, bin.source_bytes));
    parts.push_back(bin.plan);
  }
  parts.insert(parts.end(), in.annotations.begin(), in.annotations.end());
  const auto digest = digest_of(in.digest);
  const auto bins_at = builder.CreateVector(bins);
  const auto groups = create_groups(builder, in.groups);
  std::vector<wire::LogStaleness> rows;
  for (const auto &row : in.staleness)
    rows.emplace_back(row.staleness, row.episodes);
  const auto staleness = builder.CreateVectorOfStructs(rows);
  const auto kept = lengths_of(in.kept_lengths);
  return wire::CreateLogCommit(builder, in.step, &digest, bins_at, groups, in.traces, in.samples,
                               in.tokens, in.padding, in.dummies, in.wire_bytes, staleness, &kept);
}

auto create(FlatBufferBuilder &builder, message &, const log_settled &in) {
  return wire::CreateLogSettled(builder, create_groups(builder, in.groups));
}

auto create(FlatBufferBuilder &builder, message &parts, const log_scored &in) {
  parts.push_back(in.annotations);
  const wire::GroupPlace place(in.ordinal, in.source);
  const auto key = builder.CreateString(in.key);
  const auto before = builder.CreateVector(in.before);
  const auto after = builder.CreateVector(in.after);
  return wire::CreateLogScored(builder, &place, key, in.number, before, after);
}

auto create(FlatBufferBuilder &builder, message &, const log_trained &in) {
  return wire::CreateLogTrained(builder, in.step, in.rl, in.ce, in.ref_kl);
}

auto create(FlatBufferBuilder &builder, message &, const log_durable &in) {
  return wire::CreateLogDurable(builder, in.step);
}

auto create(FlatBufferBuilder &builder, message &, const log_rolled_back &in) {
  return wire::CreateLogRolledBack(builder, in.first, in.last, in.trained);
}

template <class Table> constexpr wire::LogMessage type_of(Offset<Table>) {
  return wire::LogMessageTraits<Table>::enum_value;
}

template <class T> result<message> encode_as(std::string_view name, const T &what) {
  field_reader checked(name);
  check(checked, what);
  checked.count(bytes_of(what), "body", limits::body_bytes);
  if (!checked.ok())
    return checked.failure();
  FlatBufferBuilder builder;
  message parts(1); // [0] is the body's place
  const auto table = create(builder, parts, what);
  checked.count(parts.size(), "parts", limits::log_parts);
  const auto root = wire::CreateLogRecord(builder, type_of(table), table.Union());
  parts.front() = finish_body<wire::LogRecord>(builder, root);
  return checked.done(std::move(parts));
}

// ---- in

group_key read_key(field_reader &in, const wire::GroupKey &key) {
  return {in.text(key.run(), "group.key.run"), in.text(key.env(), "group.key.env"),
          in.text(key.task(), "group.key.task"), in.text(key.group(), "group.key.group")};
}

digest128 read_digest(field_reader &in, const wire::Digest *given, std::string_view field) {
  const auto *digest = in.required(given, field);
  return digest == nullptr ? digest128{} : digest_of(*digest);
}

log_group read_group(field_reader &in, const wire::LogGroup &table) {
  log_group out;
  if (const auto *place = in.required(table.place(), "group.place")) {
    out.ordinal = place->ordinal();
    out.source = place->source();
  }
  if (const auto *key = in.required(table.key(), "group.key"))
    out.key = read_key(in, *key);
  out.states = in.list<std::uint8_t>(table.states(), "group.states", limits::list_entries,
                                     [](std::uint8_t state) { return state; });
  out.samples = in.list<log_samples>(
      table.samples(), "group.samples", episode_state_count, [](const wire::LogSamples *row) {
        return log_samples{row->state(), row->samples(), row->tokens()};
      });
  out.cut_tokens = table.cut_tokens();
  out.why = in.text(table.why(), "group.why", limits::text_bytes);
  out.gibberish = table.gibberish();
  out.repetition = table.repetition();
  out.judged_for = table.judged_for();
  out.longest_stale = table.longest_stale();
  out.overdue = table.overdue();
  return out;
}

std::vector<log_group> read_groups(field_reader &in,
                                   const flatbuffers::Vector<Offset<wire::LogGroup>> *groups) {
  return in.list<log_group>(groups, "groups", limits::list_entries,
                            [&in](const wire::LogGroup *table) { return read_group(in, *table); });
}

log_open read(field_reader &in, const wire::LogOpen &table, std::span<const frame>) {
  return {in.text(table.run(), "run"),
          read_digest(in, table.folder(), "folder"),
          table.epoch(),
          in.text(table.program(), "program"),
          in.text(table.config_digest(), "config_digest"),
          in.text(table.source(), "source"),
          table.ranks()};
}

log_generation read(field_reader &, const wire::LogGeneration &table, std::span<const frame>) {
  return {table.generation(), table.next()};
}

/// Logs of before it was counted have none.
sample_lengths lengths_of(const wire::LogLengths *in) {
  return in == nullptr ? sample_lengths{}
                       : sample_lengths{in->samples(), in->tokens(), in->longest()};
}

log_commit read(field_reader &in, const wire::LogCommit &table, std::span<const frame> parts) {
  const std::size_t bins = table.bins() == nullptr ? 0 : table.bins()->size();
  const std::size_t groups = table.groups() == nullptr ? 0 : table.groups()->size();
  log_commit out;
  if (parts.size() != bins + groups) {
    in.refuse(errc::bad_format, "parts", "{} for {} bins and {} groups", parts.size(), bins,
              groups);
    return out;
  }
  auto plan = parts.begin();
  out.step = table.step();
  out.digest = read_digest(in, table.digest(), "digest");
  out.bins = in.list<log_bin>(
      table.bins(), "bins", limits::list_entries, [&in, &plan](const wire::LogBin *bin) {
        return log_bin{bin->rank(), bin->index(), read_digest(in, bin->digest(), "bins.digest"),
                       bin->source_bytes(), *plan++};
      });
  out.groups = read_groups(in, table.groups());
  out.annotations.assign(parts.begin() + static_cast<std::ptrdiff_t>(bins), parts.end());
  out.traces = table.traces();
  out.samples = table.samples();
  out.tokens = table.tokens();
  out.padding = table.padding();
  out.dummies = table.dummies();
  out.wire_bytes = table.wire_bytes();
  out.staleness = in.list<staleness_count>(
      table.staleness(), "staleness", limits::list_entries, [](const wire::LogStaleness *row) {
        return staleness_count{row->staleness(), row->episodes()};
      });
  out.kept_lengths = lengths_of(table.kept_lengths());
  return out;
}

log_settled read(field_reader &in, const wire::LogSettled &table, std::span<const frame>) {
  return {read_groups(in, table.groups())};
}

log_scored read(field_reader &in, const wire::LogScored &table, std::span<const frame> parts) {
  log_scored out;
  if (const auto *place = in.required(table.place(), "place")) {
    out.ordinal = place->ordinal();
    out.source = place->source();
  }
  out.key = in.text(table.key(), "key");
  out.number = table.number();
  const auto before = span_of(table.before());
  const auto after = span_of(table.after());
  out.before.assign(before.begin(), before.end());
  out.after.assign(after.begin(), after.end());
  if (parts.size() == 1)
    out.annotations = parts.front();
  else
    in.refuse(errc::bad_format, "parts", "{}, 1 should be there", parts.size());
  return out;
}

log_trained read(field_reader &, const wire::LogTrained &table, std::span<const frame>) {
  return {table.step(), table.rl(), table.ce(), table.ref_kl()};
}

log_durable read(field_reader &, const wire::LogDurable &table, std::span<const frame>) {
  return {table.step()};
}

log_rolled_back read(field_reader &, const wire::LogRolledBack &table, std::span<const frame>) {
  return {table.first(), table.last(), table.trained()};
}

using read_function = result<log_record> (*)(field_reader &, const void *, std::span<const frame>);

template <class Table, bool has_parts>
result<log_record> read_as(field_reader &in, const void *table, std::span<const frame> parts) {
  if (!has_parts && !parts.empty())
    in.refuse(errc::bad_format, "parts", "{}, none should be there", parts.size());
  auto found = read(in, *static_cast<const Table *>(table), parts);
  if (in.ok())
    check(in, found);
  return in.done(log_record(std::move(found)));
}

/// In the order of log_record and of wire::LogMessage.
constexpr std::array<read_function, std::variant_size_v<log_record>> readers{
    &read_as<wire::LogOpen, false>,    &read_as<wire::LogGeneration, false>,
    &read_as<wire::LogCommit, true>,   &read_as<wire::LogSettled, false>,
    &read_as<wire::LogScored, true>,   &read_as<wire::LogTrained, false>,
    &read_as<wire::LogDurable, false>, &read_as<wire::LogRolledBack, false>};
static_assert(readers.size() == static_cast<std::size_t>(wire::LogMessage::MAX));

} // namespace

std::string_view name_of(const log_record &what) noexcept { return names[what.index()]; }

std::string_view log_record_name(std::size_t kind) noexcept { return names[kind]; }

result<message> encode(const log_record &what) {
  return std::visit([&what](const auto &in) { return encode_as(name_of(what), in); }, what);
}

result<log_record> decode_log_record(const message &parts) {
  if (parts.empty())
    return fail(errc::bad_format, "a log record without parts");
  const auto record = parse<wire::LogRecord>(parts.front());
  if (!record)
    return with_context(record.error(), "log record");
  const auto kind = static_cast<std::size_t>((*record)->message_type());
  if (kind > readers.size())
    return fail(errc::unsupported, "a log record of kind {}; this program knows kinds 1 to {}",
                kind, readers.size());
  if (kind == 0 || (*record)->message() == nullptr)
    return fail(errc::bad_format, "a log record without a message");
  field_reader in(names[kind - 1]);
  return readers[kind - 1](in, (*record)->message(), std::span(parts).subspan(1));
}

} // namespace millrace
