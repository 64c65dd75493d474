// SPDX-License-Identifier: Apache-2.0
// Part 0 of messages from a socket, and what is done with what it says: an input is the headers of
// one peer, as parts_from() reads them. The receiving side (lanes, credit) and the side that hears
// answers must keep their promises whatever comes.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "tests/support/fuzz_parts.hpp"
#include "transport/credit_budget.hpp"
#include "transport/lane_receiver.hpp"
#include "transport/lane_sender.hpp"
#include "transport/link_header.hpp"

using namespace millrace;

namespace {

constexpr std::uint64_t limit = 1 << 20;

void require(bool condition) {
  if (!condition)
    std::abort();
}

/// A peer's sessions, as the inbox keeps them.
struct receiving_side {
  void take(const link_header &in) {
    auto &lane = lanes[static_cast<std::size_t>(in.where)];
    if (in.kind == link_kind::hello) {
      lane.begin_session();
      if (in.where == lane::data)
        budget.add(1, budget.remove(1));
    } else if (in.kind == link_kind::heartbeat) {
      budget.want(1, in.data_wanted);
    } else if (in.kind == link_kind::payload) {
      const auto before = lane.delivered();
      const auto verdict = lane.judge(in.number, in.id);
      if (verdict == lane_receiver::verdict::hole || !budget.use(1, in.session % 1000))
        return;
      lane.take(in.id);
      require(lane.delivered() == before + (verdict == lane_receiver::verdict::deliver));
    }
    budget.grant({.held = 0, .held_of = [](auto) { return 0; }, .hungry = false});
    require(budget.granted() <= limit + (std::uint64_t{1} << 47));
  }

  std::array<lane_receiver, 2> lanes;
  credit_budget budget{limit, limit / 4};
};

/// A side that sends, and hears these answers.
struct sending_side {
  sending_side() {
    for (int i = 0; i < 8; ++i)
      lane.push({}, i % 2 == 0);
  }
  void take(const link_header &in) {
    if (in.kind == link_kind::welcome)
      (void)lane.begin(in.data_received, in.data_credit);
    (void)lane.received(in.data_received);
    lane.credit(in.data_credit);
    while (lane.next({}) != nullptr)
      ;
    require(lane.messages() <= 8);
  }

  lane_sender lane{true, {}};
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  receiving_side receiver;
  sending_side sender;
  for (const auto &part : test::parts_from(std::as_bytes(std::span(data, size)))) {
    for (std::size_t parts = 0; parts < 2; ++parts) {
      const auto header = parse_link_header(part.bytes(), parts);
      if (!header)
        continue;
      receiver.take(*header);
      sender.take(*header);
      // What was read can be written, and is then the same.
      const auto again = parse_link_header(encode(*header, parts).bytes(), parts);
      require(again && again->id == header->id && again->reason == header->reason);
    }
  }
  return 0;
}
