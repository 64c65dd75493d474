// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "actors/scorer/env_config.hpp"
#include "actors/scorer/verdict.hpp"
#include "runtime/frame.hpp"

namespace millrace {

/// A scorer's answer for one group: a wire::GroupAnnotations. Scores the traces of episodes that
/// are Ok and not for evaluation (whatever became of their siblings), asks the gate, routes and
/// prunes. Pure: the same header and config give the same bytes. Errors: bad_value, bad_config,
/// with the group's name; only this group fails.
result<frame> annotate(const body<wire::GroupHeader> &group, const env_config &config);

/// The first part: the advantages. A group without eligible traces has no scores. Errors:
/// bad_config for an unknown algorithm, bad_value.
result<scored_group> score_group(const wire::GroupHeader &group, const env_config &config);

/// The second part: what the scores mean for each sample.
group_verdict judge_group(const wire::GroupHeader &group, const scored_group &scores,
                          const env_config &config);

/// The last part: the body.
frame encode_annotations(const wire::GroupHeader &group, const group_verdict &verdict,
                         std::string_view algorithm);

} // namespace millrace
