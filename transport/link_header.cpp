// SPDX-License-Identifier: Apache-2.0
#include "transport/link_header.hpp"

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "schema/body.hpp"
#include "schema/limits.hpp"

namespace millrace {

namespace {

constexpr std::size_t largest = 64 << 10; // of a whole header
constexpr std::size_t most_roles = 64;

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

Offset<wire::LinkIdentity> put(FlatBufferBuilder &builder, const process_identity &who) {
  const auto run = builder.CreateString(who.run);
  const auto process = builder.CreateString(who.process);
  const auto roles = builder.CreateVectorOfStrings(who.roles);
  const auto program = builder.CreateString(who.program);
  const auto config = builder.CreateString(who.config);
  const auto folder = builder.CreateString(who.folder);
  return wire::CreateLinkIdentity(builder, run, process, roles, who.incarnation, program, config,
                                  folder);
}

status check_text(const flatbuffers::String *text, const char *field) {
  if (text != nullptr && text->size() > limits::name_bytes)
    return fail(errc::too_large, "link header: {} of {} bytes, at most {} are allowed", field,
                text->size(), limits::name_bytes);
  return {};
}

result<process_identity> identity_of(const wire::LinkIdentity &in) {
  MILLRACE_TRY(check_text(in.run(), "run"));
  MILLRACE_TRY(check_text(in.process(), "process"));
  MILLRACE_TRY(check_text(in.program(), "program"));
  MILLRACE_TRY(check_text(in.config(), "config"));
  MILLRACE_TRY(check_text(in.folder(), "folder"));
  process_identity out;
  if (const auto *roles = in.roles(); roles != nullptr) {
    if (roles->size() > most_roles)
      return fail(errc::too_large, "link header: {} roles, at most {} are allowed", roles->size(),
                  most_roles);
    for (const auto *role : *roles) {
      MILLRACE_TRY(check_text(role, "role"));
      out.roles.emplace_back(text_of(role));
    }
  }
  out.run = text_of(in.run());
  out.process = text_of(in.process());
  out.incarnation = in.incarnation();
  out.program = text_of(in.program());
  out.config = text_of(in.config());
  out.folder = text_of(in.folder());
  return out;
}

/// What each kind must have.
status check_kind(const link_header &in, std::size_t parts) {
  const bool opens = in.kind == link_kind::hello || in.kind == link_kind::welcome;
  if (opens && (!in.identity || in.identity->process.empty()))
    return fail(errc::bad_value, "link header: a hello or welcome without a name");
  if ((opens || in.kind == link_kind::payload) && in.session == 0)
    return fail(errc::bad_value, "link header: no session");
  if (in.kind == link_kind::payload && (in.number == 0 || in.id == 0))
    return fail(errc::bad_value, "link header: a message without number or id");
  if ((in.kind == link_kind::request || in.kind == link_kind::reply) && in.request == 0)
    return fail(errc::bad_value, "link header: a request without number");
  const bool carries =
      in.kind == link_kind::payload || in.kind == link_kind::request || in.kind == link_kind::reply;
  if (!carries && parts != 0)
    return fail(errc::bad_value, "link header: {} parts after one that has none", parts);
  return {};
}

/// Aligned memory for a header that lies anywhere: most are small, and there is one per message.
class aligned_copy {
public:
  explicit aligned_copy(std::span<const std::byte> bytes) {
    if (bytes.size() > small_.size()) {
      large_ = frame::copy_of(bytes);
    } else {
      if (!bytes.empty())
        std::memcpy(small_.data(), bytes.data(), bytes.size());
      size_ = bytes.size();
    }
  }
  /// Valid as long as this object.
  frame view() const {
    return size_ == 0 ? large_ : frame(nullptr, std::span(small_).first(size_));
  }

private:
  alignas(16) std::array<std::byte, 512> small_;
  std::size_t size_ = 0;
  frame large_;
};

} // namespace

frame encode(const link_header &header, std::size_t parts) {
  FlatBufferBuilder builder(256);
  Offset<wire::LinkIdentity> identity;
  if (header.identity)
    identity = put(builder, *header.identity);
  Offset<flatbuffers::String> reason;
  if (!header.reason.empty())
    reason = builder.CreateString(header.reason.substr(0, limits::name_bytes));
  const auto root = wire::CreateLinkHeader(
      builder, link_header::protocol, static_cast<wire::LinkKind>(header.kind),
      static_cast<wire::LinkLane>(header.where), header.session, header.number, header.id,
      static_cast<std::uint32_t>(parts), header.asked_for, identity, reason, header.for_good,
      header.control_received, header.data_session, header.data_received, header.data_credit,
      header.data_wanted, header.request);
  return finish_body<wire::LinkHeader>(builder, root);
}

result<link_header> parse_link_header(std::span<const std::byte> bytes, std::size_t parts) {
  if (bytes.size() > largest)
    return fail(errc::too_large, "link header of {} bytes, at most {} are allowed", bytes.size(),
                largest);
  const aligned_copy copy(bytes);
  const auto parsed = parse<wire::LinkHeader>(copy.view());
  if (!parsed)
    return tl::unexpected(parsed.error());
  const auto &in = **parsed;
  if (in.version() != link_header::protocol)
    return fail(errc::unsupported, "link protocol version {}, this process speaks {}", in.version(),
                link_header::protocol);
  if (in.kind() > wire::LinkKind::Reply || in.lane() > wire::LinkLane::Data)
    return fail(errc::bad_value, "link header: kind {}, lane {}", static_cast<int>(in.kind()),
                static_cast<int>(in.lane()));
  if (in.parts() != parts)
    return fail(errc::bad_value, "link header: {} parts after it, it says {}", parts, in.parts());
  MILLRACE_TRY(check_text(in.reason(), "reason"));
  link_header out;
  if (in.identity() != nullptr) {
    auto identity = identity_of(*in.identity());
    if (!identity)
      return tl::unexpected(std::move(identity).error());
    out.identity = std::move(*identity);
  }
  out.kind = static_cast<link_kind>(in.kind());
  out.where = static_cast<lane>(in.lane());
  out.session = in.session();
  out.number = in.number();
  out.id = in.id();
  out.asked_for = in.asked_for();
  out.reason = text_of(in.reason());
  out.for_good = in.for_good();
  out.control_received = in.control_received();
  out.data_session = in.data_session();
  out.data_received = in.data_received();
  out.data_credit = in.data_credit();
  out.data_wanted = in.data_wanted();
  out.request = in.request();
  MILLRACE_TRY(check_kind(out, parts));
  return out;
}

} // namespace millrace
