// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "runtime/json.hpp"

namespace millrace {

/// What became of one golden case.
struct case_outcome {
  enum class kind { passed, failed };
  kind verdict = kind::passed;
  std::string why; ///< what differs; empty if it passed

  static case_outcome pass() { return {}; }
  static case_outcome fail(std::string why) { return {kind::failed, std::move(why)}; }
};

/// One golden case, a whole file of its folder, run through the product's own functions. What a
/// case expects is compared as docs/algorithms.md says ("Comparing"); a case with `expected_error`
/// passes if the input is rejected. A file that is not a case of its folder fails.
case_outcome run_packing_case(const json::value &test);
case_outcome run_partition_case(const json::value &test);
case_outcome run_graph_case(const json::value &test);
case_outcome run_scoring_case(const json::value &test);
case_outcome run_loss_case(const json::value &test); ///< or a token export

} // namespace millrace
