// SPDX-License-Identifier: Apache-2.0
#include "actors/state_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace millrace {

std::filesystem::path control_socket(const std::filesystem::path &folder) {
  return folder / "control.sock";
}

result<state_folder> state_folder::open(const std::filesystem::path &given) {
  std::error_code problem;
  if (!given.empty()) {
    std::filesystem::create_directories(given, problem);
    std::error_code unknown;
    if (!std::filesystem::is_directory(given, unknown))
      return fail(std::filesystem::exists(given, unknown) ? errc::bad_argument : errc::io,
                  "state folder {}: cannot make it{}{}", given.string(),
                  problem ? ": " : ", something else is there", problem ? problem.message() : "");
    return state_folder(given, false);
  }
  const auto base = std::filesystem::temp_directory_path(problem);
  if (problem)
    return fail(errc::io, "no folder for temporary files: {}: set TMPDIR or state",
                problem.message());
  auto name = (base / "millrace-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    return fail(errc::io, "{}: cannot make a state folder: {}", base.string(),
                std::generic_category().message(errno));
  return state_folder(name, true);
}

state_folder::state_folder(state_folder &&other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, false)) {}

state_folder::~state_folder() {
  std::error_code ignored; // nothing can be done about a temporary folder that stays
  if (temporary_)
    std::filesystem::remove_all(path_, ignored);
}

} // namespace millrace
