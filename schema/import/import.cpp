// SPDX-License-Identifier: Apache-2.0
#include "schema/import/import.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "runtime/json_scan.hpp"
#include "runtime/mapping.hpp"
#include "schema/import/jsonl.hpp"
#include "schema/import/nemo_gym.hpp"
#include "schema/import/traces.hpp"
#include "schema/recording_writer.hpp"

namespace millrace {

namespace {

/// A line as JSON, as far as it is that.
struct opened_record {
  json::value root;
  const record_format *format = nullptr; ///< nothing: of no known format
  std::vector<json::defect> defects;     ///< what had to be replaced to make it JSON
};

/// Where a record stands, and who it is.
struct record_place {
  text_line line;
  std::string episode;
  std::uint64_t slot = 0;
};

struct record_group {
  group_key key;
  std::vector<record_place> records;
  std::unordered_map<std::string, std::uint64_t> lines; ///< of its episodes, by id
};

/// verifiers' results before traces: prompt and completion as messages, and no tokens.
bool is_old_format(const json::value &root) {
  for (const char *key : {"prompt", "completion"})
    if (const auto found = root.field(key); !found || !*found)
      return false;
  return true;
}

std::string describe(const json::defect &defect) {
  return fmt::format("{}: {}", json::shorten(defect.path), defect.what);
}

frame encode_text(const frame_data &episode, const std::vector<imported_text> &texts) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<wire::NodeText>> nodes;
  nodes.reserve(texts.size());
  for (const auto &text : texts) {
    const auto role = builder.CreateString(text.role);
    const auto content = builder.CreateString(text.content);
    nodes.push_back(wire::CreateNodeText(builder, text.trace, text.node, role, content));
  }
  const auto nodes_at = builder.CreateVector(nodes);
  const auto key = create_key(builder, episode.key);
  const auto id = builder.CreateString(episode.episode);
  return finish_body<wire::EpisodeText>(builder,
                                        wire::CreateEpisodeText(builder, key, id, nodes_at));
}

result<sealed_episode> seal_whole(frame_data &episode) {
  count_whole_episode(episode);
  auto parts = encode(episode);
  if (!parts)
    return tl::unexpected(std::move(parts).error());
  auto one = episode_frame::parse(std::move(*parts));
  if (!one)
    return tl::unexpected(std::move(one).error());
  MILLRACE_TRY(check_elements(*one, {}));
  return sealed_episode::seal({std::move(*one)});
}

/// Two passes over the text. The first finds out which records make a group, so that its size is
/// known before its first episode; the second reads their tokens, group by group.
class importer {
public:
  importer(std::string name, const import_options &options, const import_sink &sink)
      : options_(options), sink_(sink) {
    summary_.file = std::move(name);
  }

  result<import_summary> run(std::string_view text) {
    line_reader lines(text);
    while (const auto line = lines.next())
      list(*line);
    for (const auto &group : groups_)
      MILLRACE_TRY(import_group(group));
    std::sort(summary_.notes.begin(), summary_.notes.end(), [](const auto &a, const auto &b) {
      return std::tie(a.line, a.text) < std::tie(b.line, b.text);
    });
    return std::move(summary_);
  }

private:
  void note(std::uint64_t line, std::string_view text) {
    ++summary_.note_count;
    if (summary_.notes.size() < options_.notes)
      summary_.notes.push_back({line, reason_text(text)});
  }
  void refuse(const text_line &line, std::string_view why) {
    ++summary_.refused;
    note(line.number, why);
  }

  result<opened_record> open(const text_line &line);
  result<record_identity> identify(const opened_record &record, const text_line &line) const;
  void list(const text_line &line);
  void list_old(const text_line &line);
  status import_group(const record_group &group);
  status import_record(const record_group &group, const record_place &place);
  result<record_content> read(const opened_record &record,
                              const std::optional<std::string> &failed);
  result<sealed_episode> convert(frame_data &episode, const text_line &line,
                                 std::vector<imported_text> &texts);
  status deliver(const sealed_episode &episode, const frame &text);

  const import_options &options_;
  const import_sink &sink_;
  import_summary summary_;
  json::document document_;
  std::string repaired_;
  std::map<group_key, std::size_t> group_places_;
  std::vector<record_group> groups_;
};

result<opened_record> importer::open(const text_line &line) {
  if (line.text.size() > options_.line_bytes)
    return fail(errc::too_large, "a line of {} bytes, at most {} are read", line.text.size(),
                options_.line_bytes);
  std::vector<json::defect> defects;
  auto root = document_.parse(line.text);
  if (!root && root.error().code == errc::bad_format) {
    auto fixed = json::repair(line.text);
    if (!fixed || fixed->defects.empty())
      return tl::unexpected(std::move(root).error());
    defects = std::move(fixed->defects);
    root = document_.parse(fixed->text);
  }
  if (!root)
    return tl::unexpected(std::move(root).error());
  if (root->type() != json::kind::object)
    return root->wrong("a record is an object in {{}}; this line is something else");
  opened_record out{*root, nullptr, std::move(defects)};
  for (const auto *format : {&traces_format, &nemo_gym_format})
    if (out.format == nullptr && format->recognises(out.root))
      out.format = format;
  return out;
}

result<record_identity> importer::identify(const opened_record &record,
                                           const text_line &line) const {
  for (const auto &defect : record.defects)
    if (record.format->names_record(defect.path))
      return fail(errc::bad_format, "{}", describe(defect));
  return record.format->identify(record.root, line.number);
}

void importer::list_old(const text_line &line) {
  if (summary_.old_format++ == 0)
    summary_.old_format_first = line.number;
  summary_.old_format_last = line.number;
}

void importer::list(const text_line &line) {
  ++summary_.lines;
  const auto record = open(line);
  if (!record)
    return refuse(line, record.error().message);
  if (record->format == nullptr)
    return is_old_format(record->root)
               ? list_old(line)
               : refuse(line, "of no known format: it has neither traces nor a response");
  const auto eval = record->format->is_eval(record->root);
  if (!eval)
    return refuse(line, eval.error().message);
  if (*eval && !options_.eval) {
    ++summary_.eval_skipped;
    return;
  }
  auto identity = identify(*record, line);
  if (!identity)
    return refuse(line, identity.error().message);
  const auto [at, fresh] = group_places_.try_emplace(identity->key, groups_.size());
  if (fresh)
    groups_.push_back({identity->key, {}, {}});
  auto &group = groups_[at->second];
  const auto [first, added] = group.lines.try_emplace(identity->episode, line.number);
  if (!added)
    return refuse(line, fmt::format("episode '{}' of group {} is on line {} already",
                                    identity->episode, identity->key.text(), first->second));
  group.records.push_back({line, std::move(identity->episode), identity->slot});
}

status importer::import_group(const record_group &group) {
  if (group.records.size() > std::numeric_limits<std::uint32_t>::max())
    return fail(errc::too_large, "group {} has {} episodes", group.key.text(),
                group.records.size());
  ++summary_.groups;
  if (sink_.group)
    MILLRACE_TRY(sink_.group(group.key, static_cast<std::uint32_t>(group.records.size())));
  std::vector<const record_place *> order;
  order.reserve(group.records.size());
  for (const auto &place : group.records)
    order.push_back(&place);
  std::sort(order.begin(), order.end(), [](const auto *a, const auto *b) {
    return std::tie(a->slot, a->line.number) < std::tie(b->slot, b->line.number);
  });
  for (const auto *place : order)
    MILLRACE_TRY(import_record(group, *place));
  return {};
}

result<record_content> importer::read(const opened_record &record,
                                      const std::optional<std::string> &failed) {
  for (const auto &defect : record.defects)
    if (record.format->reads(defect.path))
      return fail(errc::bad_format, "{}", describe(defect));
  auto content = record.format->read(record.root);
  if (!content || failed)
    return content;
  for (const auto &node : content->nodes)
    if (!node.token_ids.empty())
      return content;
  return fail(errc::bad_value, "{}: all are empty, yet the record says that it is fine",
              record.format->tokens_at);
}

/// The episode of a line with its tokens. Errors: why it cannot be used; then `episode` has none.
result<sealed_episode> importer::convert(frame_data &episode, const text_line &line,
                                         std::vector<imported_text> &texts) {
  const auto record = open(line);
  if (!record)
    return tl::unexpected(record.error());
  const auto failed = record->format->failure(record->root);
  if (!failed)
    return tl::unexpected(failed.error());
  episode.eval = record->format->is_eval(record->root).value_or(false);
  auto content = read(*record, *failed);
  if (!content && !*failed)
    return tl::unexpected(std::move(content).error());
  finish_data finish;
  if (*failed) {
    finish.status = wire::EpisodeStatus::Errored;
    finish.reason = **failed;
  }
  if (!content) {
    // It failed, whatever its tokens: it stays an errored episode.
    note(line.number, content.error().message + "; the errored episode is kept without tokens");
    episode.finish = std::move(finish);
    return seal_whole(episode);
  }
  episode.first_version = content->first_version;
  episode.last_version = content->last_version;
  episode.frozen = content->frozen;
  episode.nodes = std::move(content->nodes);
  finish.traces = std::move(content->traces);
  episode.finish = std::move(finish);
  texts = std::move(content->texts);
  if (!record->defects.empty()) {
    ++summary_.patched;
    note(line.number, describe(record->defects.front()) + "; ignored, import does not need it");
  }
  return seal_whole(episode);
}

status importer::import_record(const record_group &group, const record_place &place) {
  frame_data episode;
  episode.key = group.key;
  episode.episode = place.episode;
  episode.group_size = static_cast<std::uint32_t>(group.records.size());
  std::vector<imported_text> texts;
  auto sealed = convert(episode, place.line, texts);
  if (sealed) {
    ++(episode.finish->status == wire::EpisodeStatus::Ok ? summary_.ok : summary_.errored);
    return deliver(*sealed, encode_text(episode, texts));
  }
  ++summary_.rejected;
  note(place.line.number, sealed.error().message);
  episode.nodes.clear();
  episode.finish = finish_data{};
  episode.finish->status = wire::EpisodeStatus::Rejected;
  episode.finish->reason = reason_text(
      fmt::format("{}:{}: {}", summary_.file, place.line.number, sealed.error().message));
  sealed = seal_whole(episode);
  MILLRACE_ASSERT(sealed, "a rejected episode without tokens: {}", sealed.error().message);
  return deliver(*sealed, encode_text(episode, {}));
}

status importer::deliver(const sealed_episode &episode, const frame &text) {
  summary_.nodes += episode.finish().nodes();
  summary_.tokens += episode.tokens();
  return sink_.episode ? sink_.episode(episode, text) : status{};
}

} // namespace

result<import_summary> import_text(std::string_view text, std::string name,
                                   const import_options &options, const import_sink &sink) {
  return importer(std::move(name), options, sink).run(text);
}

result<import_summary> import_file(const std::filesystem::path &in,
                                   const std::filesystem::path &out,
                                   const import_options &options) {
  const auto bytes = map_file(in);
  if (!bytes)
    return tl::unexpected(bytes.error());
  if (std::error_code ignored; std::filesystem::equivalent(in, out, ignored))
    return fail(errc::bad_argument, "'{}' is the input: name another file for the recording",
                out.string());
  auto writer = recording_writer::create(out, in.filename().string());
  if (!writer)
    return tl::unexpected(std::move(writer).error());
  import_sink sink;
  sink.group = [&writer](const group_key &key, std::uint32_t size) {
    return writer->append_group_size(key, size);
  };
  sink.episode = [&writer](const sealed_episode &episode, const frame &text) -> status {
    MILLRACE_TRY(writer->append(episode));
    return writer->append(record_kind::text, {text});
  };
  const std::string_view text(reinterpret_cast<const char *>(bytes->data()), bytes->size());
  auto summary = import_text(text, in.string(), options, sink);
  if (!summary || summary->imported() == 0)
    return summary;
  MILLRACE_TRY(writer->finish());
  return summary;
}

} // namespace millrace
