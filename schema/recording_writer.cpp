// SPDX-License-Identifier: Apache-2.0
#include "schema/recording_writer.hpp"

#include "schema/limits.hpp"

namespace millrace {

namespace {

result<message> encode_index(const recording_counts &counts, std::uint64_t records) {
  std::size_t size = 4096; // an upper bound
  for (const auto &group : counts.groups)
    size += 256 + group.key.run.size() + group.key.env.size() + group.key.task.size() +
            group.key.group.size();
  if (size > limits::body_bytes)
    return fail(errc::too_large, "{} groups are too many for one recording; write several",
                counts.groups.size());
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<wire::GroupCount>> groups;
  groups.reserve(counts.groups.size());
  for (const auto &group : counts.groups)
    groups.push_back(wire::CreateGroupCount(builder, create_key(builder, group.key), group.size,
                                            group.ok, group.errored, group.cancelled,
                                            group.rejected, group.nodes, group.tokens));
  const auto root =
      wire::CreateRecordingIndex(builder, counts.episodes, counts.nodes, counts.tokens,
                                 builder.CreateVector(groups), records, counts.unfinished);
  return message{finish_body<wire::RecordingIndex>(builder, root)};
}

} // namespace

result<recording_writer> recording_writer::create(const std::filesystem::path &path,
                                                  std::string_view source) {
  auto file = output_file::create(path);
  if (!file)
    return tl::unexpected(std::move(file).error());
  const auto header = file_header_of(recording_format::file_magic, source);
  MILLRACE_TRY(file->write(std::as_bytes(std::span(&header, 1))));
  return recording_writer(std::move(*file));
}

status recording_writer::append(record_kind kind, const message &parts) {
  if (parts.empty() || parts.size() > limits::parts)
    return fail(errc::bad_format, "a {} record of {} parts", to_string(kind), parts.size());
  MILLRACE_TRY(tally_.add(kind, parts));
  return write(kind, parts);
}

status recording_writer::append(const sealed_episode &episode) {
  tally_.add(episode);
  return write(record_kind::sealed_episode, episode.parts());
}

status recording_writer::append(const episode_frame &frame) {
  tally_.add(frame);
  return write(record_kind::frame, frame.parts());
}

status recording_writer::append_group_size(const group_key &key, std::uint32_t size) {
  flatbuffers::FlatBufferBuilder builder;
  const auto root = wire::CreateGroupSize(builder, create_key(builder, key), size);
  return append(record_kind::group_size, {finish_body<wire::GroupSize>(builder, root)});
}

status recording_writer::write(record_kind kind, const message &parts) {
  const framed_record framed(static_cast<std::uint32_t>(kind), parts);
  MILLRACE_TRY(file_.write(framed.header()));
  for (const auto bytes : framed.body())
    MILLRACE_TRY(file_.write(bytes));
  ++records_;
  return {};
}

status recording_writer::finish() {
  auto index = encode_index(tally_.counts(), records_);
  if (!index)
    return tl::unexpected(std::move(index).error());
  MILLRACE_TRY(write(record_kind::index, *index));
  return file_.finish();
}

} // namespace millrace
