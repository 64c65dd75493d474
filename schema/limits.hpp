// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::limits {

/// A FlatBuffer, encoded or received. Source: FlatBuffers 2.0.8 builds buffers over 2 GiB silently
/// wrong; half of that leaves room for what a builder adds. Unit: bytes.
inline constexpr std::size_t body_bytes = std::size_t{1} << 30;

/// One raw array part. Unit: bytes.
inline constexpr std::size_t array_part_bytes = std::size_t{64} << 20;

/// Parts of one message or record, the body included.
inline constexpr std::size_t parts = 65'536;

/// Alignment that parse() asks of a buffer's address: the most that the wire gives. Unit: bytes.
inline constexpr std::size_t body_alignment = 8;

/// Frames of an episode smaller than this are copied into one slab when it is sealed. Unit: bytes.
inline constexpr std::size_t seal_copy_below = std::size_t{64} << 10;

/// Dimensions of a raw array.
inline constexpr std::size_t array_rank = 8;

/// Nodes of one trace, traces of one episode.
inline constexpr std::size_t nodes_per_trace = 1'000'000;
inline constexpr std::size_t traces_per_episode = 65'535;

/// Tokens of one episode: offsets and lengths of a sample fit 32 bits.
inline constexpr std::uint64_t tokens_per_episode = std::uint64_t{1} << 31;

/// Tokens of one micro batch, padding included: what a receiver widens is bounded by it.
inline constexpr std::uint64_t micro_batch_tokens = std::uint64_t{1} << 26;

/// One raw array of a micro batch with its padding, as a trainer gets it. Unit: bytes.
inline constexpr std::uint64_t tensor_bytes = std::uint64_t{1} << 34;

/// A name from outside: of a run, environment, task, group, episode, trace, agent or role. They are
/// repeated in headers and reports. Unit: bytes.
inline constexpr std::size_t name_bytes = 4096;

/// A hint of a trace as text (TraceResult.hint). Unit: bytes.
inline constexpr std::size_t hint_bytes = std::size_t{1} << 20;

/// Text for people in a message between processes: a reason, a problem. Longer ones are cut when
/// they are sent. Unit: bytes.
inline constexpr std::size_t text_bytes = std::size_t{16} << 10;

/// One list in a message between actors. Far above what they send; a decoder allocates no more.
inline constexpr std::size_t list_entries = std::size_t{1} << 20;

/// One list in a message between hosts: processes of a run, actors, waits or counters of a process.
inline constexpr std::size_t host_entries = std::size_t{1} << 16;

/// A message between hosts other than a report, whose text may be as long as a body. Unit: bytes.
inline constexpr std::size_t host_bytes = std::size_t{64} << 20;

/// Parts of one record of the planner's log: a step has a plan for each micro batch and annotations
/// for each group.
inline constexpr std::size_t log_parts = std::size_t{1} << 21;

/// State of a key that scorers hand on (answer_link). Unit: bytes.
inline constexpr std::size_t state_bytes = std::size_t{1} << 20;

/// What a collective tells all ranks (rank_notice). Unit: bytes.
inline constexpr std::size_t notice_bytes = std::size_t{1} << 20;

} // namespace millrace::limits
