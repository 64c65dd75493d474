// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace millrace {

/// Work of one stage of the data path, added up over the actors that do it. Thread: any.
struct stage_meter {
  std::atomic<std::uint64_t> nanoseconds{0}; ///< time spent computing, not waiting
  std::atomic<std::uint64_t> bytes{0};       ///< bytes that the stage took in or made

  double seconds() const noexcept { return static_cast<double>(nanoseconds.load()) * 1e-9; }

  /// Adds the time of its own life to the meter.
  class timer {
  public:
    explicit timer(stage_meter &meter) : meter_(meter) {}
    timer(const timer &) = delete;
    timer &operator=(const timer &) = delete;
    ~timer() {
      const auto took = std::chrono::steady_clock::now() - start_;
      meter_.nanoseconds += static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
    }

  private:
    stage_meter &meter_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  };
};

/// The stages that reports show, in the order of the data.
struct stage_meters {
  stage_meter decode;         ///< reading, verifying, checking, sealing
  stage_meter score;          ///< headers, advantages, annotations
  stage_meter pack;           ///< planning and gathering
  stage_meter trainer_decode; ///< verifying micro batches
  stage_meter tensors;        ///< widening to trainer widths
  stage_meter digest;         ///< content digests
};

} // namespace millrace
