// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/agreement.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace millrace {

namespace {

/// Travels between ranks as these bytes, little-endian; 32 of them without padding.
struct claim {
  std::uint64_t step;
  digest128 step_digest;
  std::uint64_t micro_batches;

  bool operator==(const claim &) const = default;

  std::string text() const {
    return fmt::format("step {}, digest {}, {} micro batches", step, step_digest.hex(),
                       micro_batches);
  }
};
static_assert(sizeof(claim) == 32);

} // namespace

status agree(collective &ranks, std::uint64_t step, const digest128 &step_digest,
             std::uint64_t micro_batches) {
  const claim mine{step, step_digest, micro_batches};
  std::vector<claim> all(static_cast<std::size_t>(ranks.size()));
  MILLRACE_TRY(ranks.all_gather({"what each rank was handed", step},
                                std::as_bytes(std::span(&mine, 1)),
                                std::as_writable_bytes(std::span(all))));
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      return fail(errc::conflict,
                  "the ranks were handed different steps: rank 0: {}; rank {}: {}; nothing of it "
                  "is trained",
                  all[0].text(), rank, all[rank].text());
  return {};
}

} // namespace millrace
