// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/result.hpp"

namespace millrace {

/// Who calls and why; it stands in every error message.
struct collective_site {
  std::string_view what;  ///< for example "token counts"
  std::uint64_t step = 0; ///< the training step; 0: before the first
};

enum class reduction : std::uint32_t { sum, min, max };

/// What the ranks of one training job do together: exchanges of small values, not of gradients.
/// Every rank must make the same calls in the same order; each call first exchanges what every rank
/// asks for, in a message of fixed size, so that ranks that differ (another call, another size) all
/// return the same `conflict` at once, instead of hanging or mixing bytes up.
/// Owner: one per rank. Thread: calls from one thread at a time, abort() from any.
/// Errors: `conflict` as above, after which the ranks can go on; `timed_out` after the deadline
/// that the rank was made with, `peer_lost` when a rank is gone or someone aborted: from then on
/// every call fails with that same error, and the other ranks hear of it at once or by their own
/// deadline.
class collective {
public:
  virtual ~collective() = default;
  collective(const collective &) = delete;
  collective &operator=(const collective &) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }

  /// Replaces each value by its reduction over the ranks. Each rank reduces all values itself, in
  /// the order of the ranks, so that all get the same bits, on every backend. An int64 sum that
  /// overflows is a `bad_value` on every rank.
  status all_reduce(collective_site site, std::span<std::int64_t> values, reduction how);
  status all_reduce(collective_site site, std::span<double> values, reduction how);

  /// Shape: `mine` is equally long on every rank, `all` is size() times that, in rank order.
  status all_gather(collective_site site, std::span<const std::byte> mine,
                    std::span<std::byte> all);

  /// Fills `bytes`, equally long on every rank, with those of rank `root`.
  status broadcast(collective_site site, std::span<std::byte> bytes, int root);

  /// Ends this rank's part: a call under way in another thread returns, later ones fail, and the
  /// other ranks' calls end. Waits for nobody. The first reason stays.
  virtual void abort(std::string_view reason) noexcept = 0;

protected:
  collective(int rank, int size);

  /// The one thing that a backend does: exchanges blocks of equal length, each with every rank.
  /// Errors: a message without site and rank, which the caller puts before it.
  virtual status exchange(std::span<const std::byte> mine, std::span<std::byte> all) = 0;

private:
  struct request;
  status gather(collective_site site, const request &mine, std::span<const std::byte> bytes,
                std::span<std::byte> all);
  template <class T>
  status reduce(collective_site site, std::span<T> values, reduction how, std::uint32_t operation);

  const int rank_;
  const int size_;
};

} // namespace millrace
