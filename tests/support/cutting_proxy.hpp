// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

namespace millrace::test {

/// Stands between two processes on TCP, and cuts their connections (with a reset, in the middle of
/// whatever is on the way) or slows them down. Its thread ends with it.
class cutting_proxy {
public:
  /// @param to "tcp://127.0.0.1:PORT", where connections are passed on to.
  explicit cutting_proxy(const std::string &to);
  cutting_proxy(const cutting_proxy &) = delete;
  cutting_proxy &operator=(const cutting_proxy &) = delete;
  ~cutting_proxy();

  const std::string &endpoint() const noexcept { return endpoint_; }

  /// The connection that brings the next `bytes`th byte (both directions and all connections
  /// together) is cut there.
  void cut_after(std::uint64_t bytes) { cut_at_ = passed_ + bytes; }
  bool cut_is_done() const { return cut_at_ == 0; }
  void cut_all() { cut_all_ = true; }
  /// Unit: bytes/s, each connection and direction; 0: as fast as it goes.
  void slow_down(std::uint64_t rate) { rate_ = rate; }
  /// Connections that are accepted and lead nowhere, while true.
  void stall(bool stalled) { stalled_ = stalled; }
  std::uint64_t connections() const { return connections_; }

private:
  void run();

  std::string endpoint_;
  std::uint16_t to_port_ = 0;
  int listener_ = -1;
  std::atomic<std::uint64_t> passed_{0}, cut_at_{0}, rate_{0}, connections_{0};
  std::atomic<bool> cut_all_{false}, stalled_{false}, end_{false};
  std::thread thread_;
};

} // namespace millrace::test
