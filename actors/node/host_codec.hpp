// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "actors/node/host_messages.hpp"
#include "runtime/frame.hpp"
#include "runtime/result.hpp"

namespace millrace {

/// One body, a HostEnvelope.
message encode(const host_parcel &what);

/// Errors: bad_format, bad_value, too_large, with the name of the field.
result<host_parcel> decode_host(const message &parts);

/// True if the first part claims to be a HostEnvelope (by its file identifier).
bool is_host_message(const message &parts) noexcept;

} // namespace millrace
