// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
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

/// 40 characters of the Z85 alphabet: what a key looks like.
bool is_curve_key(std::string_view text) noexcept;

/// Makes a new key pair in `folder` (created, if it is not there): secret.key (mode 0600),
/// public.key, and `allowed` with one line that lets this key in under any role and name. After an
/// error nothing is left of it. Errors: conflict if one of the files is there already; io.
result<curve_keys> make_keys(const std::filesystem::path &folder);

/// Reads a folder of make_keys(). Lines of `allowed`: KEY ROLE[,ROLE...] [NAME]; * is any role, any
/// name is meant by * and by none. A line, and a word after a blank, that starts with # begins a
/// comment (make_keys() makes no such key). Errors: not_found, bad_format with file and line,
/// bad_value if secret.key can be read by others or public.key is not that of secret.key.
result<curve_config> load_keys(const std::filesystem::path &folder);

/// The entry of a key; nullptr if it is not let in.
const allowed_peer *find_key(const curve_config &config, std::string_view key) noexcept;

/// Whether this key may say that it is `process` with all these roles.
bool allows(const curve_config &config, std::string_view key, std::string_view process,
            std::span<const std::string> roles) noexcept;

} // namespace millrace
