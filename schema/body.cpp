// SPDX-License-Identifier: Apache-2.0
#include "schema/body.hpp"

#include <cstdint>

#include "schema/limits.hpp"

namespace millrace {

namespace {

using flatbuffers::Offset;
using flatbuffers::String;
using flatbuffers::Vector;

/// Walks what the verifier accepted and adds up the bytes of all vectors and strings. FlatBuffers
/// lets tables share vectors, so a small buffer can claim terabytes: the walk stops at the first
/// vector that passes the budget. The verifier (2.0.8) checks the alignment of a vector's length,
/// not of its elements: that is done here too.
class vector_audit {
public:
  explicit vector_audit(std::size_t budget) : budget_(budget) {}

  bool ok() const { return ok_; }

  template <class T> void scalars(const Vector<T> *v) {
    if (v != nullptr)
      take(v->Data(), v->size(), sizeof(T), alignof(T));
  }
  template <class T> void structs(const Vector<const T *> *v) {
    if (v != nullptr)
      take(v->Data(), v->size(), sizeof(T), alignof(T));
  }
  void text(const String *s) {
    if (s != nullptr)
      take(s->Data(), s->size(), 1, 1);
  }
  void texts(const Vector<Offset<String>> *v) {
    tables(v, [this](const String &s) { text(&s); });
  }
  template <class T, class F> void tables(const Vector<Offset<T>> *v, F &&each) {
    if (v == nullptr)
      return;
    take(v->Data(), v->size(), sizeof(Offset<T>), alignof(Offset<T>));
    for (flatbuffers::uoffset_t i = 0; ok_ && i < v->size(); ++i)
      each(*v->Get(i));
  }

private:
  void take(const void *data, std::size_t count, std::size_t size, std::size_t alignment) {
    const auto bytes = count * size; // a count is 32 bits, a size is small
    if (bytes > budget_ || (count > 0 && reinterpret_cast<std::uintptr_t>(data) % alignment != 0)) {
      ok_ = false;
      return;
    }
    budget_ -= bytes;
  }

  std::size_t budget_;
  bool ok_ = true;
};

void visit(vector_audit &a, const wire::GroupKey *key) {
  if (key == nullptr)
    return;
  a.text(key->run());
  a.text(key->env());
  a.text(key->task());
  a.text(key->group());
}

void visit(vector_audit &a, const wire::Array *array) {
  if (array == nullptr)
    return;
  a.text(array->name());
  a.scalars(array->shape());
}

void visit(vector_audit &a, const wire::ArrayShape *array) {
  if (array == nullptr)
    return;
  a.text(array->name());
  a.scalars(array->shape());
}

void visit(vector_audit &a, const wire::Node &node) {
  a.scalars(node.token_ids());
  a.scalars(node.mask());
  a.scalars(node.is_content());
  a.scalars(node.logprobs());
  a.scalars(node.advantages());
  a.scalars(node.reference_logprobs());
  a.scalars(node.rl_weights());
  a.scalars(node.ce_weights());
  a.scalars(node.ref_kl_weights());
  a.scalars(node.mm_token_type_ids());
  a.scalars(node.echo_mask());
  visit(a, node.routed_experts());
  a.tables(node.tensors(), [&a](const wire::Array &array) { visit(a, &array); });
  visit(a, node.kept_counts());
  visit(a, node.kept_ids());
}

void visit(vector_audit &a, const wire::EpisodeFrame &root) {
  visit(a, root.key());
  a.text(root.episode());
  a.texts(root.roles());
  a.tables(root.nodes(), [&a](const wire::Node &node) { visit(a, node); });
  if (const auto *finish = root.finish(); finish != nullptr) {
    a.text(finish->reason());
    a.tables(finish->traces(), [&a](const wire::TraceResult &trace) {
      a.text(trace.id());
      a.text(trace.agent());
      a.scalars(trace.hint_token_ids());
      a.text(trace.hint());
    });
  }
}

void visit(vector_audit &a, const wire::SealedIndex &root) {
  a.tables(root.frames(), [&a](const wire::SealedFrame &f) { a.structs(f.extents()); });
}

void visit(vector_audit &a, const wire::TraceHeader &trace) {
  a.text(trace.id());
  a.text(trace.agent());
  a.scalars(trace.node_parents());
  a.scalars(trace.node_roles());
  a.scalars(trace.node_flags());
  a.scalars(trace.node_tokens());
  a.scalars(trace.node_trainable());
  a.tables(trace.branches(), [&a](const wire::BranchHeader &branch) {
    visit(a, branch.routed_experts());
    a.tables(branch.tensors(), [&a](const wire::ArrayShape &array) { visit(a, &array); });
    a.scalars(branch.image_runs());
    a.scalars(branch.image_grid_thw());
  });
}

void visit(vector_audit &a, const wire::GroupHeader &root) {
  visit(a, root.key());
  a.text(root.source());
  a.texts(root.roles());
  a.tables(root.episodes(), [&a](const wire::EpisodeHeader &episode) {
    a.text(episode.id());
    a.text(episode.reason());
    a.tables(episode.traces(), [&a](const wire::TraceHeader &trace) { visit(a, trace); });
  });
}

void visit(vector_audit &a, const wire::GroupAnnotations &root) {
  visit(a, root.key());
  a.text(root.source());
  a.text(root.algorithm());
  a.tables(root.traces(), [&a](const wire::TraceAnnotation &trace) {
    a.tables(trace.samples(), [](const wire::SampleAnnotation &) {});
    a.scalars(trace.reference_logprobs());
  });
  a.tables(root.echo_roles(), [&a](const wire::EchoRole &entry) { a.text(entry.role()); });
}

void visit(vector_audit &a, const wire::AgentBaselines &root) {
  a.tables(root.agents(), [&a](const wire::AgentBaseline &entry) { a.text(entry.agent()); });
}

void visit(vector_audit &a, const wire::BinPlan &root) {
  a.tables(root.groups(), [&a](const wire::GroupRef &group) {
    visit(a, group.key());
    a.text(group.source());
  });
  a.structs(root.pieces());
}

void visit(vector_audit &a, const wire::Stream *stream) {
  if (stream == nullptr)
    return;
  a.scalars(stream->encodings());
  a.scalars(stream->values());
}

void visit(vector_audit &a, const wire::MicroBatch &root) {
  a.scalars(root.input_ids());
  a.scalars(root.flags());
  a.scalars(root.sequence_lengths());
  a.scalars(root.sequence_envs());
  a.texts(root.env_names());
  for (const auto *stream :
       {root.inference_logprobs(), root.temperatures(), root.advantages(), root.ref_logprobs(),
        root.rl_weights(), root.ce_weights(), root.ref_kl_weights()})
    visit(a, stream);
  a.scalars(root.mm_token_type_ids());
  visit(a, root.routed_experts());
  a.tables(root.mm_kwargs(), [&a](const wire::Array &array) { visit(a, &array); });
  a.structs(root.origins());
  visit(a, root.kept_counts());
  visit(a, root.kept_ids());
  a.scalars(root.rewards());
}

void visit(vector_audit &a, const wire::GroupSize &root) { visit(a, root.key()); }

void visit(vector_audit &a, const wire::EpisodeText &root) {
  visit(a, root.key());
  a.text(root.episode());
  a.tables(root.nodes(), [&a](const wire::NodeText &node) {
    a.text(node.role());
    a.text(node.content());
  });
}

void visit(vector_audit &a, const wire::RecordingIndex &root) {
  a.tables(root.groups(), [&a](const wire::GroupCount &group) { visit(a, group.key()); });
}

void visit(vector_audit &a, const wire::JournalOpen &root) {
  a.text(root.run());
  a.text(root.assembler());
}

void visit(vector_audit &a, const wire::JournalArrival &root) {
  visit(a, root.key());
  a.text(root.source());
  a.text(root.episode());
  a.text(root.reason());
}

void visit(vector_audit &a, const wire::PeerId *peer) {
  if (peer != nullptr)
    a.text(peer->name());
}

void visit(vector_audit &a, const wire::GroupInfo *info) {
  if (info == nullptr)
    return;
  visit(a, info->key());
  a.text(info->source());
}

/// Without a default: the compiler names the message that is forgotten here.
void visit(vector_audit &a, const wire::ActorEnvelope &root) {
  a.text(root.to());
  if (root.message() == nullptr)
    return;
  switch (root.message_type()) {
  case wire::ActorMessage::FrameArrived:
    return visit(a, root.message_as_FrameArrived()->info());
  case wire::ActorMessage::EpisodeArrived:
    return visit(a, root.message_as_EpisodeArrived()->info());
  case wire::ActorMessage::EpisodeRejected: {
    const auto &in = *root.message_as_EpisodeRejected();
    visit(a, in.info());
    a.text(in.id());
    return a.text(in.reason());
  }
  case wire::ActorMessage::GroupSized:
    return visit(a, root.message_as_GroupSized()->info());
  case wire::ActorMessage::GroupComplete:
    visit(a, root.message_as_GroupComplete()->assembler());
    return visit(a, root.message_as_GroupComplete()->planner());
  case wire::ActorMessage::GroupScored:
    if (const auto *once = root.message_as_GroupScored()->once(); once != nullptr) {
      a.text(once->key());
      a.scalars(once->before());
      a.scalars(once->after());
    }
    return visit(a, root.message_as_GroupScored()->assembler());
  case wire::ActorMessage::ScoreWanted:
    a.text(root.message_as_ScoreWanted()->key());
    visit(a, root.message_as_ScoreWanted()->assembler());
    return visit(a, root.message_as_ScoreWanted()->scorer());
  case wire::ActorMessage::ScoreTurn:
    return a.scalars(root.message_as_ScoreTurn()->state());
  case wire::ActorMessage::GroupTombstone:
    a.text(root.message_as_GroupTombstone()->why());
    return visit(a, root.message_as_GroupTombstone()->assembler());
  case wire::ActorMessage::GroupsReceived:
    return a.structs(root.message_as_GroupsReceived()->groups());
  case wire::ActorMessage::GroupsSettled:
    return a.structs(root.message_as_GroupsSettled()->groups());
  case wire::ActorMessage::PackBin:
    visit(a, root.message_as_PackBin()->feeder());
    return a.tables(root.message_as_PackBin()->groups(),
                    [&a](const wire::BinGroup &group) { visit(a, group.assembler()); });
  case wire::ActorMessage::FetchEpisodes:
    a.scalars(root.message_as_FetchEpisodes()->members());
    return visit(a, root.message_as_FetchEpisodes()->packer());
  case wire::ActorMessage::EpisodesFetched:
    a.scalars(root.message_as_EpisodesFetched()->parts());
    return a.text(root.message_as_EpisodesFetched()->problem());
  case wire::ActorMessage::MicroBatchReady:
    return visit(a, root.message_as_MicroBatchReady()->packer());
  case wire::ActorMessage::FetchMicroBatch:
    return visit(a, root.message_as_FetchMicroBatch()->feeder());
  case wire::ActorMessage::StepStaged:
    return a.structs(root.message_as_StepStaged()->digests());
  case wire::ActorMessage::RankNotice:
    a.text(root.message_as_RankNotice()->key());
    return a.scalars(root.message_as_RankNotice()->value());
  case wire::ActorMessage::RunFailed:
    a.text(root.message_as_RunFailed()->who());
    return a.text(root.message_as_RunFailed()->text());
  case wire::ActorMessage::PlannerRefused:
    return a.text(root.message_as_PlannerRefused()->why());
  case wire::ActorMessage::RankState:
    a.structs(root.message_as_RankState()->committed());
    return a.structs(root.message_as_RankState()->trained());
  case wire::ActorMessage::EndGeneration:
    return a.text(root.message_as_EndGeneration()->why());
  case wire::ActorMessage::GroupsWanted:
    return a.structs(root.message_as_GroupsWanted()->groups());
  case wire::ActorMessage::GroupAgain:
    return visit(a, root.message_as_GroupAgain()->info());
  case wire::ActorMessage::GroupHeld:
    return visit(a, root.message_as_GroupHeld()->assembler());
  case wire::ActorMessage::MessagesSafe:
    a.structs(root.message_as_MessagesSafe()->messages());
    return visit(a, root.message_as_MessagesSafe()->assembler());
  case wire::ActorMessage::PlannerHello:
    return visit(a, root.message_as_PlannerHello()->planner());
  case wire::ActorMessage::NONE:
  case wire::ActorMessage::BeginGeneration:
  case wire::ActorMessage::StepsRecorded:
  case wire::ActorMessage::CheckpointSaved:
  case wire::ActorMessage::FinishTraining:
  case wire::ActorMessage::PlannerProgress:
  case wire::ActorMessage::SourceEnded:
  case wire::ActorMessage::PermitWanted:
  case wire::ActorMessage::Permit:
  case wire::ActorMessage::Hunger:
  case wire::ActorMessage::MicroBatchPacked:
  case wire::ActorMessage::MicroBatchTaken:
  case wire::ActorMessage::StageStep:
  case wire::ActorMessage::CommitStep:
  case wire::ActorMessage::StepTrained:
    return;
  }
}

void visit(vector_audit &a, const wire::ProcessEntry *entry) {
  if (entry == nullptr)
    return;
  a.text(entry->process());
  a.text(entry->endpoint());
  a.text(entry->key());
  a.tables(entry->actors(), [&a](const wire::ActorEntry &actor) { a.text(actor.name()); });
}

void visit(vector_audit &a, const wire::ProcessStatus *status) {
  if (status == nullptr)
    return;
  a.text(status->host());
  a.text(status->program());
  a.tables(status->counters(), [&a](const wire::CounterEntry &entry) { a.text(entry.name()); });
  a.tables(status->waits(), [&a](const wire::WaitEntry &wait) {
    a.text(wait.who());
    a.text(wait.what());
    a.text(wait.on());
  });
}

void visit(vector_audit &a, const wire::HostEnvelope &root) {
  if (root.message() == nullptr)
    return;
  switch (root.message_type()) {
  case wire::HostMessage::ProcessAlive:
    visit(a, root.message_as_ProcessAlive()->entry());
    return visit(a, root.message_as_ProcessAlive()->status());
  case wire::HostMessage::DirectoryView:
    return a.tables(root.message_as_DirectoryView()->entries(),
                    [&a](const wire::ProcessEntry &entry) { visit(a, &entry); });
  case wire::HostMessage::ProcessLeaves:
    return a.text(root.message_as_ProcessLeaves()->process());
  case wire::HostMessage::ProcessLost:
    return a.text(root.message_as_ProcessLost()->process());
  case wire::HostMessage::EndRun:
    return a.text(root.message_as_EndRun()->failure());
  case wire::HostMessage::ProcessReport:
    a.text(root.message_as_ProcessReport()->process());
    return a.text(root.message_as_ProcessReport()->json());
  case wire::HostMessage::StatusAnswer:
    a.text(root.message_as_StatusAnswer()->run());
    return a.tables(root.message_as_StatusAnswer()->processes(), [&a](const wire::StatusLine &l) {
      visit(a, l.entry());
      visit(a, l.status());
    });
  case wire::HostMessage::DrainQuestion:
    return a.text(root.message_as_DrainQuestion()->name());
  case wire::HostMessage::ToolAnswer:
    return a.text(root.message_as_ToolAnswer()->text());
  case wire::HostMessage::FeedQuestion:
    return a.text(root.message_as_FeedQuestion()->reason());
  case wire::HostMessage::FeedAnswer:
    a.text(root.message_as_FeedAnswer()->reason());
    return a.text(root.message_as_FeedAnswer()->folder());
  case wire::HostMessage::NONE:
  case wire::HostMessage::DrainProcess:
  case wire::HostMessage::StatusQuestion:
    return;
  }
}

void visit(vector_audit &a, const wire::LinkHeader &root) {
  a.text(root.reason());
  if (const auto *identity = root.identity(); identity != nullptr) {
    a.text(identity->run());
    a.text(identity->process());
    a.texts(identity->roles());
    a.text(identity->program());
    a.text(identity->config());
    a.text(identity->folder());
  }
}

void visit(vector_audit &a, const wire::LogGroup *group) {
  if (group == nullptr)
    return;
  visit(a, group->key());
  a.scalars(group->states());
  a.structs(group->samples());
  a.text(group->why());
}

void visit(vector_audit &a, const wire::LogRecord &root) {
  if (root.message() == nullptr)
    return;
  const auto each_group = [&a](const wire::LogGroup &group) { visit(a, &group); };
  switch (root.message_type()) {
  case wire::LogMessage::LogOpen:
    a.text(root.message_as_LogOpen()->run());
    a.text(root.message_as_LogOpen()->program());
    a.text(root.message_as_LogOpen()->config_digest());
    return a.text(root.message_as_LogOpen()->source());
  case wire::LogMessage::LogCommit:
    a.tables(root.message_as_LogCommit()->bins(), [](const wire::LogBin &) {});
    a.structs(root.message_as_LogCommit()->staleness());
    return a.tables(root.message_as_LogCommit()->groups(), each_group);
  case wire::LogMessage::LogSettled:
    return a.tables(root.message_as_LogSettled()->groups(), each_group);
  case wire::LogMessage::LogScored:
    a.text(root.message_as_LogScored()->key());
    a.scalars(root.message_as_LogScored()->before());
    return a.scalars(root.message_as_LogScored()->after());
  case wire::LogMessage::NONE:
  case wire::LogMessage::LogGeneration:
  case wire::LogMessage::LogTrained:
  case wire::LogMessage::LogDurable:
  case wire::LogMessage::LogRolledBack:
    return;
  }
}

} // namespace

template <class T> result<body<T>> parse(frame bytes, const std::shared_ptr<memory_meter> &meter) {
  constexpr std::size_t smallest = 8 + flatbuffers::kFileIdentifierLength;
  const char *identifier = body_identifier<T>;
  if (bytes.size() > limits::body_bytes)
    return fail(errc::too_large, "{} body of {} bytes, at most {} are allowed", identifier,
                bytes.size(), limits::body_bytes);
  if (bytes.size() < smallest)
    return fail(errc::bad_format, "{} body of {} bytes is too short", identifier, bytes.size());
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % limits::body_alignment != 0)
    bytes = frame::copy_of(bytes.bytes(), meter);

  const auto *data = reinterpret_cast<const std::uint8_t *>(bytes.data());
  if (!flatbuffers::BufferHasIdentifier(data, identifier))
    return fail(errc::bad_format, "not a {} body: another identifier", identifier);
  constexpr flatbuffers::uoffset_t depth = 16;
  flatbuffers::Verifier verifier(data, bytes.size(), depth,
                                 static_cast<flatbuffers::uoffset_t>(bytes.size() / 8));
  if (!verifier.VerifyBuffer<T>(identifier))
    return fail(errc::bad_format, "{} body of {} bytes does not verify", identifier, bytes.size());
  const auto *table = flatbuffers::GetRoot<T>(data);
  vector_audit audit(bytes.size());
  visit(audit, *table);
  if (!audit.ok())
    return fail(errc::bad_format,
                "{} body of {} bytes: vectors overlap beyond its size or are misaligned",
                identifier, bytes.size());
  return body<T>(std::move(bytes), table);
}

template result<body<wire::EpisodeFrame>> parse(frame, const std::shared_ptr<memory_meter> &);
template result<body<wire::SealedIndex>> parse(frame, const std::shared_ptr<memory_meter> &);
template result<body<wire::GroupHeader>> parse(frame, const std::shared_ptr<memory_meter> &);
template result<body<wire::GroupAnnotations>> parse(frame, const std::shared_ptr<memory_meter> &);
template result<body<wire::AgentBaselines>> parse(frame, const std::shared_ptr<memory_meter> &);
template result<body<wire::BinPlan>> parse(frame, const std::shared_ptr<memory_meter> &);
template result<body<wire::MicroBatch>> parse(frame, const std::shared_ptr<memory_meter> &);
template result<body<wire::GroupSize>> parse(frame, const std::shared_ptr<memory_meter> &);
template result<body<wire::EpisodeText>> parse(frame, const std::shared_ptr<memory_meter> &);
template result<body<wire::RecordingIndex>> parse(frame, const std::shared_ptr<memory_meter> &);
template result<body<wire::JournalOpen>> parse(frame, const std::shared_ptr<memory_meter> &);
template result<body<wire::JournalArrival>> parse(frame, const std::shared_ptr<memory_meter> &);
template result<body<wire::ActorEnvelope>> parse(frame, const std::shared_ptr<memory_meter> &);
template result<body<wire::HostEnvelope>> parse(frame, const std::shared_ptr<memory_meter> &);
template result<body<wire::LinkHeader>> parse(frame, const std::shared_ptr<memory_meter> &);
template result<body<wire::LogRecord>> parse(frame, const std::shared_ptr<memory_meter> &);

} // namespace millrace
