// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace {

/// What happens when nothing is trained for long. Config keys: progress.*.
struct progress_config {
  /// Unit: s. Range: 0 (off) to 604,800. Default: 300. After so long without a trained step the
  /// chain of waits is printed. Less than a slow step takes: it is printed for nothing.
  double limit_s = 300;

  /// Also end the run, as failed. Default: false.
  bool stop = false;
};

} // namespace millrace
