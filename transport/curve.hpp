// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.hpp"

namespace millrace {

/// A CURVE key pair, each key as 40 characters of Z85.
struct curve_keys {
  std::string public_key;
  std::string secret_key;
};

/// Who may come in with a key, and as what.
struct allowed_peer {
  std::string key;                ///< public
  std::vector<std::string> roles; ///< "*": any
  std::string process;            ///< "*": any name
};

/// Keys of a process and the list of those it lets in. From a folder that `millrace keygen` makes.
struct curve_config {
  curve_keys mine;
  std::vector<allowed_peer> allowed;
};

/// Makes a new key pair in `folder` (created, if it is not there): secret.key (mode 0600),
/// public.key, and `allowed` with one line that lets this key in under any role and name.
/// Errors: conflict if a key is there already; io.
result<curve_keys> make_keys(const std::filesystem::path &folder);

/// Reads a folder of make_keys(). Lines of `allowed`: KEY ROLE[,ROLE...] [NAME]; # comments.
/// Errors: not_found, bad_format with file and line, bad_value if secret.key can be read by others.
result<curve_config> load_keys(const std::filesystem::path &folder);

} // namespace millrace
