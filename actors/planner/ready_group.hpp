// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/planner/ledger.hpp"
#include "actors/planner/plan.hpp"
#include "runtime/result.hpp"
#include "schema/body.hpp"

namespace millrace {

/// A group as the planner's queue holds it.
struct ready_group {
  body<wire::GroupHeader> header;
  std::optional<body<wire::GroupAnnotations>> annotations; ///< none: nobody scored it
  group_end end = group_end::settled;                      ///< any other: it goes to no step
  std::string why;                                         ///< for people: why it goes to none

  std::vector<sample_record> samples; ///< kept by the scorer: by episode, trace, branch
  std::vector<sample_shape> shapes;   ///< parallel to samples
  std::uint64_t kept_traces = 0;      ///< traces with a kept sample
  std::uint64_t kept_tokens = 0;      ///< tokens of kept samples, after the cut at seq_len
};

/// Verifies the bodies and finds what the scorer kept.
/// Errors: bad_format; conflict if the annotations are of another group, or of other traces than
/// are to be scored; bad_value if they are of other branches than these have.
result<ready_group> make_ready_group(frame header, frame annotations, std::uint64_t seq_len);

/// The same for a group that ends without annotations.
result<ready_group> make_unready_group(frame header, group_end end);

} // namespace millrace
