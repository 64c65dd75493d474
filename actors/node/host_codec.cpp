// SPDX-License-Identifier: Apache-2.0
#include "actors/node/host_codec.hpp"

#include <array>
#include <cstring>
#include <type_traits>

#include "runtime/utf8.hpp"
#include "schema/field_reader.hpp"
#include "schema/limits.hpp"
#include "schema/wire_digest.hpp"

namespace millrace {

namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using variant_type = decltype(host_parcel::what);

// ---- out

auto text_into(FlatBufferBuilder &out, std::string_view value) { return out.CreateString(value); }

/// Text for people.
auto prose_into(FlatBufferBuilder &out, std::string_view value) {
  return text_into(out, utf8_prefix(value, limits::text_bytes));
}

/// A vector of tables.
template <class T, class F>
auto list_into(FlatBufferBuilder &out, const std::vector<T> &values, F &&each) {
  std::vector<decltype(each(out, values.front()))> offsets;
  offsets.reserve(values.size());
  for (const auto &value : values)
    offsets.push_back(each(out, value));
  return out.CreateVector(offsets);
}

auto write(FlatBufferBuilder &out, const actor_entry &in) {
  const auto name = text_into(out, in.name);
  return wire::CreateActorEntry(out, static_cast<wire::Role>(in.what), name);
}

auto write(FlatBufferBuilder &out, const process_entry &in) {
  const auto process = text_into(out, in.process);
  const auto endpoint = text_into(out, in.endpoint);
  const auto key = text_into(out, in.key);
  const auto actors =
      list_into(out, in.actors, [](auto &to, const actor_entry &one) { return write(to, one); });
  return wire::CreateProcessEntry(out, process, in.incarnation, endpoint, key, actors,
                                  static_cast<wire::ProcessState>(in.state));
}

auto write(FlatBufferBuilder &out, const wait_entry &in) {
  const auto who = text_into(out, in.who);
  const auto what = prose_into(out, in.what);
  const auto on = text_into(out, in.on);
  return wire::CreateWaitEntry(out, who, what, on, in.ms);
}

auto write(FlatBufferBuilder &out, const counter_entry &in) {
  const auto name = text_into(out, in.name);
  return wire::CreateCounterEntry(out, name, in.value);
}

auto write(FlatBufferBuilder &out, const process_status &in) {
  const auto host = text_into(out, in.host);
  const auto program = text_into(out, in.program);
  const auto counters = list_into(
      out, in.counters, [](auto &to, const counter_entry &one) { return write(to, one); });
  const auto waits =
      list_into(out, in.waits, [](auto &to, const wait_entry &one) { return write(to, one); });
  return wire::CreateProcessStatus(out, host, in.pid, program, in.uptime_ms, in.held, in.mapped,
                                   in.limit, in.peak_rss, in.in_flight, counters, waits);
}

auto write(FlatBufferBuilder &out, const process_alive &in) {
  const auto entry = write(out, in.entry);
  const auto status = write(out, in.status);
  return wire::CreateProcessAlive(out, entry, status);
}

auto write(FlatBufferBuilder &out, const directory_view &in) {
  const auto entries =
      list_into(out, in.entries, [](auto &to, const process_entry &one) { return write(to, one); });
  return wire::CreateDirectoryView(out, in.directory, entries);
}

auto write(FlatBufferBuilder &out, const process_leaves &in) {
  const auto process = text_into(out, in.process);
  return wire::CreateProcessLeaves(out, process, in.incarnation);
}

auto write(FlatBufferBuilder &out, const drain_process &) { return wire::CreateDrainProcess(out); }

auto write(FlatBufferBuilder &out, const end_run &in) {
  const auto failure = prose_into(out, in.failure);
  return wire::CreateEndRun(out, failure, in.restart);
}

auto write(FlatBufferBuilder &out, const process_lost &in) {
  const auto process = text_into(out, in.process);
  return wire::CreateProcessLost(out, process, in.incarnation);
}

auto write(FlatBufferBuilder &out, const process_report &in) {
  const auto process = text_into(out, in.process);
  const auto json = text_into(out, in.json);
  return wire::CreateProcessReport(out, process, json);
}

auto write(FlatBufferBuilder &out, const status_question &) {
  return wire::CreateStatusQuestion(out);
}

auto write(FlatBufferBuilder &out, const status_line &in) {
  const auto entry = write(out, in.entry);
  const auto status = write(out, in.status);
  return wire::CreateStatusLine(out, entry, status, in.age_ms, in.since_ms);
}

auto write(FlatBufferBuilder &out, const status_answer &in) {
  const auto run = text_into(out, in.run);
  const auto processes =
      list_into(out, in.processes, [](auto &to, const status_line &one) { return write(to, one); });
  return wire::CreateStatusAnswer(out, run, processes);
}

auto write(FlatBufferBuilder &out, const drain_question &in) {
  const auto name = text_into(out, in.name);
  return wire::CreateDrainQuestion(out, name);
}

auto write(FlatBufferBuilder &out, const tool_answer &in) {
  const auto text = prose_into(out, in.text);
  return wire::CreateToolAnswer(out, in.ok, text);
}

auto write(FlatBufferBuilder &out, const feed_question &in) {
  const auto reason = prose_into(out, in.reason);
  return wire::CreateFeedQuestion(out, in.rank, in.peer, in.peers, in.asker,
                                  static_cast<wire::FeedWish>(in.wish), in.generation, in.step,
                                  in.index, reason);
}

auto write(FlatBufferBuilder &out, const feed_answer &in) {
  const auto reason = prose_into(out, in.reason);
  const auto folder = text_into(out, in.folder);
  const auto digest = digest_of(in.digest);
  return wire::CreateFeedAnswer(out, static_cast<wire::FeedState>(in.state), reason, in.restart,
                                in.generation, in.step, &digest, in.rl_tokens, in.ce_tokens,
                                in.ref_kl_tokens, in.micro_batches, folder);
}

template <class Table> constexpr wire::HostMessage type_of(Offset<Table>) {
  return wire::HostMessageTraits<Table>::enum_value;
}

// ---- in

constexpr std::array<std::string_view, std::variant_size_v<variant_type>> names{
    "process_alive",  "directory_view",  "process_leaves", "drain_process",  "end_run",
    "process_report", "status_question", "status_answer",  "drain_question", "tool_answer",
    "process_lost",   "feed_question",   "feed_answer"};

process_entry entry_of(field_reader &in, const wire::ProcessEntry *given) {
  const auto *entry = in.required(given, "entry");
  if (entry == nullptr)
    return {};
  return {in.name(entry->process(), "entry.process"),
          entry->incarnation(),
          in.text(entry->endpoint(), "entry.endpoint"),
          in.text(entry->key(), "entry.key"),
          in.list<actor_entry>(entry->actors(), "entry.actors", limits::host_entries,
                               [&in](const wire::ActorEntry *one) {
                                 return actor_entry{
                                     in.one_of(one->role(), role::host, "entry.actors.role"),
                                     in.name(one->name(), "entry.actors.name")};
                               }),
          in.one_of(entry->state(), process_state::gone, "entry.state")};
}

std::vector<counter_entry> counters_of(field_reader &in, const wire::ProcessStatus &status) {
  return in.list<counter_entry>(
      status.counters(), "status.counters", limits::host_entries,
      [&in](const wire::CounterEntry *one) {
        return counter_entry{in.text(one->name(), "status.counters.name"), one->value()};
      });
}

std::vector<wait_entry> waits_of(field_reader &in, const wire::ProcessStatus &status) {
  return in.list<wait_entry>(
      status.waits(), "status.waits", limits::host_entries, [&in](const wire::WaitEntry *one) {
        return wait_entry{in.text(one->who(), "status.waits.who"),
                          in.text(one->what(), "status.waits.what", limits::text_bytes),
                          in.text(one->on(), "status.waits.on"), one->ms()};
      });
}

process_status status_of(field_reader &in, const wire::ProcessStatus *given) {
  const auto *status = in.required(given, "status");
  if (status == nullptr)
    return {};
  process_status out;
  out.host = in.text(status->host(), "status.host");
  out.pid = status->pid();
  out.program = in.text(status->program(), "status.program");
  out.uptime_ms = status->uptime_ms();
  out.held = status->held();
  out.mapped = status->mapped();
  out.limit = status->limit();
  out.peak_rss = status->peak_rss();
  out.in_flight = status->in_flight();
  out.counters = counters_of(in, *status);
  out.waits = waits_of(in, *status);
  return out;
}

process_alive read(field_reader &in, const wire::ProcessAlive &table) {
  return {entry_of(in, table.entry()), status_of(in, table.status())};
}

directory_view read(field_reader &in, const wire::DirectoryView &table) {
  return {
      table.directory(),
      in.list<process_entry>(table.entries(), "entries", limits::host_entries,
                             [&in](const wire::ProcessEntry *one) { return entry_of(in, one); })};
}

process_leaves read(field_reader &in, const wire::ProcessLeaves &table) {
  return {in.name(table.process(), "process"), table.incarnation()};
}

drain_process read(field_reader &, const wire::DrainProcess &) { return {}; }

end_run read(field_reader &in, const wire::EndRun &table) {
  return {in.text(table.failure(), "failure", limits::text_bytes), table.restart()};
}

process_lost read(field_reader &in, const wire::ProcessLost &table) {
  return {in.name(table.process(), "process"), table.incarnation()};
}

process_report read(field_reader &in, const wire::ProcessReport &table) {
  return {in.name(table.process(), "process"), in.text(table.json(), "json", limits::body_bytes)};
}

status_question read(field_reader &, const wire::StatusQuestion &) { return {}; }

status_answer read(field_reader &in, const wire::StatusAnswer &table) {
  return {in.text(table.run(), "run"),
          in.list<status_line>(table.processes(), "processes", limits::host_entries,
                               [&in](const wire::StatusLine *one) {
                                 return status_line{entry_of(in, one->entry()),
                                                    status_of(in, one->status()), one->age_ms(),
                                                    one->since_ms()};
                               })};
}

drain_question read(field_reader &in, const wire::DrainQuestion &table) {
  return {in.name(table.name(), "name")};
}

tool_answer read(field_reader &in, const wire::ToolAnswer &table) {
  return {table.ok(), in.text(table.text(), "text", limits::text_bytes)};
}

feed_question read(field_reader &in, const wire::FeedQuestion &table) {
  feed_question out{table.rank(),
                    table.peer(),
                    table.peers(),
                    table.asker(),
                    in.one_of(table.wish(), feed_wish::leave, "wish"),
                    table.generation(),
                    table.step(),
                    table.index(),
                    in.text(table.reason(), "reason", limits::text_bytes)};
  if (out.asker == 0)
    in.refuse(errc::bad_value, "asker", "it is missing");
  return out;
}

feed_answer read(field_reader &in, const wire::FeedAnswer &table) {
  return {in.one_of(table.state(), feed_state::refused, "state"),
          in.text(table.reason(), "reason", limits::text_bytes),
          table.restart(),
          table.generation(),
          table.step(),
          table.digest() == nullptr ? digest128{} : digest_of(*table.digest()),
          table.rl_tokens(),
          table.ce_tokens(),
          table.ref_kl_tokens(),
          table.micro_batches(),
          in.text(table.folder(), "folder")};
}

using read_function = variant_type (*)(field_reader &, const void *);

template <class Table> variant_type read_as(field_reader &in, const void *table) {
  return read(in, *static_cast<const Table *>(table));
}

/// Proves that the tables stand in the order of both host_parcel and wire::HostMessage: a message
/// without a codec does not compile.
template <class... Tables> struct table_list {
  static_assert(sizeof...(Tables) == std::variant_size_v<variant_type>);
  static_assert(sizeof...(Tables) == static_cast<std::size_t>(wire::HostMessage::MAX));
  template <std::size_t... I> static constexpr bool in_order(std::index_sequence<I...>) {
    return ((static_cast<std::size_t>(wire::HostMessageTraits<Tables>::enum_value) == I + 1 &&
             std::is_same_v<decltype(read(std::declval<field_reader &>(),
                                          std::declval<const Tables &>())),
                            std::variant_alternative_t<I, variant_type>>)&&...);
  }
  static_assert(in_order(std::index_sequence_for<Tables...>()));
  static constexpr std::array<read_function, sizeof...(Tables)> functions{&read_as<Tables>...};
};

using tables =
    table_list<wire::ProcessAlive, wire::DirectoryView, wire::ProcessLeaves, wire::DrainProcess,
               wire::EndRun, wire::ProcessReport, wire::StatusQuestion, wire::StatusAnswer,
               wire::DrainQuestion, wire::ToolAnswer, wire::ProcessLost, wire::FeedQuestion,
               wire::FeedAnswer>;

} // namespace

message encode(const host_parcel &what) {
  FlatBufferBuilder out;
  auto type = wire::HostMessage::NONE;
  Offset<void> table_at;
  std::visit(
      [&](const auto &in) {
        const auto table = write(out, in);
        type = type_of(table);
        table_at = table.Union();
      },
      what.what);
  return {finish_body<wire::HostEnvelope>(out, wire::CreateHostEnvelope(out, type, table_at))};
}

result<host_parcel> decode_host(const message &parts) {
  if (parts.size() != 1)
    return fail(errc::bad_format, "host message: {} parts, 1 should be there", parts.size());
  const auto envelope = parse<wire::HostEnvelope>(parts.front());
  if (!envelope)
    return with_context(envelope.error(), "host message");
  field_reader head("host message");
  const auto kind = static_cast<std::size_t>((*envelope)->message_type());
  if (kind == 0 || kind > names.size())
    head.refuse(errc::bad_value, "message", "kind {} is unknown", kind);
  if ((*envelope)->message_type() != wire::HostMessage::ProcessReport)
    head.count(parts.front().size(), "size", limits::host_bytes);
  const auto *table = head.required((*envelope)->message(), "message");
  if (table == nullptr)
    return head.failure();
  field_reader in(names[kind - 1]);
  return in.done(host_parcel{tables::functions[kind - 1](in, table)});
}

bool is_host_message(const message &parts) noexcept {
  constexpr std::size_t at = sizeof(flatbuffers::uoffset_t);
  constexpr std::size_t size = flatbuffers::kFileIdentifierLength;
  return !parts.empty() && parts.front().size() >= at + size &&
         std::memcmp(parts.front().data() + at, body_identifier<wire::HostEnvelope>, size) == 0;
}

} // namespace millrace
