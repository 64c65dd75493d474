// SPDX-License-Identifier: Apache-2.0
#include "actors/link_config.hpp"

#include <string_view>

#include "transport/curve.hpp"
#include "transport/endpoint.hpp"

namespace millrace {

link_limits link_config::limits() const {
  link_limits out;
  out.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(timeout_s * 1000));
  out.min_rate = min_rate;
  return out;
}

std::vector<error> link_config::validate() const {
  std::vector<error> errors;
  const auto broken = [&errors](std::string_view key, std::string_view why) {
    errors.push_back({errc::bad_config, fmt::format("{}: {}", key, why)});
  };
  if (const auto parsed = endpoint::parse(directory); !parsed)
    broken("directory.endpoint", parsed.error().message);
  if (const auto parsed = endpoint::parse(bind); bind != "ipc" && !parsed)
    broken("link.bind", parsed.error().message);
  const endpoint anywhere{endpoint::protocol::tcp, "0.0.0.0", 1, ""};
  if (!advertise.empty())
    if (const auto reached = advertised(anywhere, advertise); !reached)
      errors.push_back({errc::bad_config, reached.error().message}); // names the key
  if (!directory_key.empty() && !is_curve_key(directory_key))
    broken("curve.directory_key", "40 characters of Z85 are wanted, as in public.key");
  if (!directory_key.empty() && curve_folder.empty())
    broken("curve.directory_key", "curve.folder must be set too: this process needs keys");
  return errors;
}

} // namespace millrace
