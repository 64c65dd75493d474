// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace {

/// Config keys: trainer.*.
struct trainer_config {
  /// Key: trainer.timeout. Unit: s. Range: 1 to 86,400. Default: 300. How long ranks wait for each
  /// other in a collective before they give up. Less: a rank that hangs is noticed sooner; one that
  /// only stalls ends the run.
  double timeout_s = 300;
};

} // namespace millrace
