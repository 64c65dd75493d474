// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "runtime/digest.hpp"
#include "schema/body.hpp"

namespace millrace {

/// A digest as bodies carry it, and as values.
inline digest128 digest_of(const wire::Digest &in) {
  digest128 out;
  std::copy(in.bytes()->begin(), in.bytes()->end(), out.bytes.begin());
  return out;
}
inline wire::Digest digest_of(const digest128 &in) {
  return wire::Digest(flatbuffers::make_span(in.bytes));
}

} // namespace millrace
