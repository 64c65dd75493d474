// SPDX-License-Identifier: Apache-2.0
#include "actors/reader/quarantine.hpp"

#include "runtime/json_out.hpp"

namespace millrace {

status quarantine::add(const refusal &what) {
  const std::lock_guard lock(mutex_);
  ++count_;
  if (!file_.is_open())
    file_.open(path_, std::ios::binary | std::ios::app);
  json::tree line;
  line["source"] = what.source;
  line["offset"] = what.offset;
  line["bytes"] = what.bytes;
  line["group"] = what.group;
  line["episode"] = what.episode;
  line["reason"] = what.reason;
  file_ << json::dump(line) << '\n' << std::flush;
  if (!file_)
    return fail(errc::io,
                "{}: cannot write the quarantine file: free some space or choose another "
                "state folder",
                path_.string());
  return {};
}

std::uint64_t quarantine::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

} // namespace millrace
