// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/node/codec.hpp"
#include "schema/field_reader.hpp"
#include "schema/wire_digest.hpp"

namespace millrace {

/// A message while it is read: its fields, and the parts behind its envelope.
class parcel_reader : public field_reader {
public:
  parcel_reader(std::string_view name, message parts, const peer_resolver &peers,
                const std::shared_ptr<memory_meter> &meter)
      : field_reader(name), parts_(std::move(parts)), peers_(peers), meter_(meter) {}

  /// There must be exactly so many parts.
  void expect_parts(std::uint64_t count) {
    if (parts_.size() != count)
      refuse(errc::bad_format, "parts", "{} after the envelope, {} should be there", parts_.size(),
             count);
  }

  group_ref group(const wire::GroupPlace *place) {
    const auto *in = required(place, "group");
    return in == nullptr ? group_ref{} : group_ref{in->ordinal(), in->source()};
  }

  std::vector<group_ref> groups(const flatbuffers::Vector<const wire::GroupPlace *> *places) {
    return list<group_ref>(places, "groups", limits::list_entries, [](const wire::GroupPlace *in) {
      return group_ref{in->ordinal(), in->source()};
    });
  }

  planner_moment moment(const wire::PlannerMoment *when) {
    const auto *in = required(when, "when");
    return in == nullptr ? planner_moment{} : planner_moment{in->epoch(), in->number()};
  }

  bin_ref bin(const wire::BinPlace *place) {
    const auto *in = required(place, "bin");
    return in == nullptr
               ? bin_ref{}
               : bin_ref{
                     in->step(), in->rank(), in->index(), {digest_of(in->folder()), in->epoch()}};
  }

  planner_claim claim(const wire::PlannerClaim *given) {
    const auto *in = required(given, "claim");
    const auto *folder = in == nullptr ? nullptr : required(in->folder(), "claim.folder");
    return folder == nullptr ? planner_claim{} : planner_claim{digest_of(*folder), in->epoch()};
  }

  std::shared_ptr<const group_info> info(const wire::GroupInfo *given) {
    const auto *in = required(given, "info");
    const auto *key = in == nullptr ? nullptr : required(in->key(), "info.key");
    if (key == nullptr)
      return nullptr;
    auto out = std::make_shared<group_info>();
    out->key = {text(key->run(), "info.key.run"), text(key->env(), "info.key.env"),
                text(key->task(), "info.key.task"), text(key->group(), "info.key.group")};
    out->source = text(in->source(), "info.source");
    out->size = count(in->size(), "info.size", limits::list_entries);
    return out;
  }

  /// State of a key: bytes that only its algorithm reads.
  std::vector<std::uint8_t> bytes(const flatbuffers::Vector<std::uint8_t> *value,
                                  std::string_view field) {
    const auto found = span_of(value);
    count(found.size(), field, limits::state_bytes);
    return ok() ? std::vector<std::uint8_t>(found.begin(), found.end())
                : std::vector<std::uint8_t>();
  }

  /// Place of an episode in its group.
  std::uint32_t member(std::uint32_t place) {
    return count(place, "member", limits::list_entries - 1);
  }

  peer who(const wire::PeerId *id, std::string_view field) {
    const auto *in = required(id, field);
    if (in == nullptr)
      return {};
    auto name = this->name(in->name(), field);
    if (!ok())
      return {};
    auto found = peers_({name, in->incarnation()});
    if (!found)
      refuse(errc::not_found, field, "no actor '{}' is known here", name);
    return found;
  }

  /// The next part, a body. Precondition: expect_parts().
  template <class T> std::optional<body<T>> next_body(std::string_view field) {
    if (!ok())
      return std::nullopt;
    auto found = parse<T>(std::move(parts_[next_++]), meter_);
    if (found)
      return std::move(*found);
    refuse(std::move(found).error(), field);
    return std::nullopt;
  }

  template <class T> frame next_frame(std::string_view field) {
    const auto found = next_body<T>(field);
    return found ? found->bytes() : frame();
  }

  /// The next `count` parts, a sealed episode. Precondition: they are there.
  sealed_episode episode(std::size_t count, std::string_view field) {
    if (!ok())
      return {};
    const auto first = parts_.begin() + static_cast<std::ptrdiff_t>(next_);
    const auto last = first + static_cast<std::ptrdiff_t>(count);
    next_ += count;
    auto found =
        sealed_episode::parse({std::move_iterator(first), std::move_iterator(last)}, meter_);
    if (found)
      return std::move(*found);
    refuse(std::move(found).error(), field);
    return {};
  }

  message all_parts() { return std::move(parts_); }
  std::size_t part_count() const noexcept { return parts_.size(); }
  const std::shared_ptr<memory_meter> &meter() const noexcept { return meter_; }

private:
  message parts_;
  std::size_t next_ = 0;
  const peer_resolver &peers_;
  const std::shared_ptr<memory_meter> &meter_;
};

} // namespace millrace
