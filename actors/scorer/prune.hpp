// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "actors/scorer/verdict.hpp"

namespace millrace {

/// Takes the rl weight off tokens whose advantage is zero, and drops a sample that has nothing left
/// to train. The header alone decides. Source: docs/algorithms.md, "Prune".
void prune(const wire::GroupHeader &group, std::vector<trace_verdict> &traces);

/// A sample that the rl component would train has advantages: scored, or from its nodes. Errors:
/// bad_value, with episode, trace and leaf.
status check_advantages(const wire::GroupHeader &group, const std::vector<trace_verdict> &traces);

/// A sample that the ref_kl component would train has reference logprobs: from a reference policy,
/// or from its nodes. Errors: bad_value, with episode, trace and leaf.
status check_reference(const wire::GroupHeader &group, const std::vector<trace_verdict> &traces);

} // namespace millrace
