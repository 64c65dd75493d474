// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "runtime/frame.hpp"
#include "runtime/result.hpp"

#include <flatbuffers/flatbuffers.h>

#include "wire/actor_generated.h"
#include "wire/episode_generated.h"
#include "wire/group_generated.h"
#include "wire/host_generated.h"
#include "wire/link_generated.h"
#include "wire/log_generated.h"
#include "wire/micro_batch_generated.h"
#include "wire/recording_generated.h"

namespace millrace {

/// The file identifier of each body: four characters at offset 4 of its FlatBuffer.
template <class T> inline constexpr const char *body_identifier = nullptr;
template <> inline constexpr const char *body_identifier<wire::EpisodeFrame> = "MREF";
template <> inline constexpr const char *body_identifier<wire::SealedIndex> = "MRSI";
template <> inline constexpr const char *body_identifier<wire::GroupHeader> = "MRGH";
template <> inline constexpr const char *body_identifier<wire::GroupAnnotations> = "MRGA";
template <> inline constexpr const char *body_identifier<wire::AgentBaselines> = "MRAB";
template <> inline constexpr const char *body_identifier<wire::BinPlan> = "MRBP";
template <> inline constexpr const char *body_identifier<wire::MicroBatch> = "MRMB";
template <> inline constexpr const char *body_identifier<wire::GroupSize> = "MRGS";
template <> inline constexpr const char *body_identifier<wire::EpisodeText> = "MRTX";
template <> inline constexpr const char *body_identifier<wire::RecordingIndex> = "MRIX";
template <> inline constexpr const char *body_identifier<wire::JournalOpen> = "MRJO";
template <> inline constexpr const char *body_identifier<wire::JournalArrival> = "MRJA";
template <> inline constexpr const char *body_identifier<wire::ActorEnvelope> = "MRAE";
template <> inline constexpr const char *body_identifier<wire::HostEnvelope> = "MRHE";
template <> inline constexpr const char *body_identifier<wire::LinkHeader> = "MRLH";
template <> inline constexpr const char *body_identifier<wire::LogRecord> = "MRLR";

/// A verified FlatBuffer and the frame that keeps it alive. Made only by parse(); copying copies a
/// reference.
template <class T> class body {
public:
  const T *operator->() const noexcept { return table_; }
  const T &operator*() const noexcept { return *table_; }
  const frame &bytes() const noexcept { return bytes_; }

private:
  template <class U> friend result<body<U>> parse(frame, const std::shared_ptr<memory_meter> &);
  body(frame bytes, const T *table) noexcept : bytes_(std::move(bytes)), table_(table) {}

  frame bytes_;
  const T *table_;
};

/// The structure level of verification (docs/formats.md): size and identifier; the FlatBuffers
/// verifier with at most size / 8 tables; every vector at its natural alignment, and all vectors
/// that can be reached, summed, no larger than the buffer. A buffer that is not 8-aligned is copied
/// into memory that is, counted by `meter`. Errors: too_large, bad_format.
template <class T>
result<body<T>> parse(frame bytes, const std::shared_ptr<memory_meter> &meter = nullptr);

/// Finishes a body with its identifier and takes its bytes.
/// Precondition: the builder holds less than limits::body_bytes.
template <class T>
frame finish_body(flatbuffers::FlatBufferBuilder &builder, flatbuffers::Offset<T> root) {
  builder.Finish(root, body_identifier<T>);
  auto detached = std::make_shared<flatbuffers::DetachedBuffer>(builder.Release());
  const auto bytes = std::as_bytes(std::span(detached->data(), detached->size()));
  return frame(std::move(detached), bytes);
}

/// The text of an optional string field.
inline std::string_view text_of(const flatbuffers::String *text) noexcept {
  return text == nullptr ? std::string_view{} : std::string_view(text->data(), text->size());
}

/// The elements of an optional vector of scalars or structs.
template <class T> std::span<const T> span_of(const flatbuffers::Vector<T> *vector) noexcept {
  if (vector == nullptr)
    return {};
  return {reinterpret_cast<const T *>(vector->Data()), vector->size()};
}
template <class T>
std::span<const T> span_of(const flatbuffers::Vector<const T *> *vector) noexcept {
  if (vector == nullptr)
    return {};
  return {reinterpret_cast<const T *>(vector->Data()), vector->size()};
}

} // namespace millrace
