// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/result.hpp"
#include "transport/hub.hpp"

namespace millrace {

/// How the processes of a run find and reach each other. Config keys: directory.*, link.*,
/// insecure, curve.*. `run`, which is one process, needs none of it.
struct link_config {
  /// Key: directory.endpoint. Where the directory binds, and where all others look for it. Default:
  /// tcp://127.0.0.1:7070, this machine alone.
  std::string directory = "tcp://127.0.0.1:7070";

  /// Key: link.bind. What a process binds; * as the port: a free one. Default:
  /// tcp://127.0.0.1:*, this machine alone. Several hosts: tcp://0.0.0.0:*. "ipc": a socket file of
  /// the process's name in the state folder.
  std::string bind = "tcp://127.0.0.1:*";

  /// Key: link.advertise. Host that others reach this process by. Default: none, then that of
  /// `bind`, or of the machine if `bind` is a wildcard.
  std::string advertise;

  /// Key: link.timeout. Unit: s. Range: 0.1 to 3,600. Default: 10. A peer that is silent for so
  /// long is late. Less: losses are noticed sooner; a busy host may be taken for a dead one.
  double timeout_s = 10;

  /// Key: link.min_rate. Unit: bytes/s. Range: 1 KiB to 1 TiB. Default: 1 MiB. A message may take
  /// its size over this, plus the timeout, before its session is renewed.
  std::uint64_t min_rate = std::uint64_t{1} << 20;

  /// Key: insecure. Binds other addresses than loopback without keys. Default: false.
  bool insecure = false;

  /// Key: curve.folder. Keys of this process, made by `millrace keygen`. Default: none.
  std::filesystem::path curve_folder;

  /// Key: curve.directory_key. The directory's public key. Default: the one in `curve_folder`,
  /// which is right where all processes share a pair.
  std::string directory_key;

  /// What a hub takes of it.
  link_limits limits() const;

  /// Rules beyond ranges: endpoints, hosts and keys are ones.
  std::vector<error> validate() const;
};

} // namespace millrace
