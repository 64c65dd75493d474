// SPDX-License-Identifier: Apache-2.0
#include "transport/curve.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "runtime/file.hpp"
#include "runtime/nearest.hpp"
#include "runtime/utf8.hpp"

namespace millrace {
namespace {

constexpr std::size_t key_size = 40;
constexpr std::size_t largest_list = std::size_t{1} << 20;
constexpr const char *secret_name = "secret.key";
constexpr const char *public_name = "public.key";
constexpr const char *allowed_name = "allowed";
constexpr std::string_view any = "*";
/// actors/peer.hpp has them as an enum; nothing below actors/ may include that.
constexpr std::array<std::string_view, 8> roles{"directory", "env-reader", "assembler", "scorer",
                                                "planner",   "packer",     "trainer",   any};

using key_buffer = std::array<char, key_size + 1>;

std::string reason_of(int number) { return std::generic_category().message(number); }

bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back()))
    text.remove_suffix(1);
  return text;
}

/// Parts between separators; empty ones too.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

/// The words of a line up to a comment.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  while (!(line = trimmed(line)).empty() && line.front() != '#') {
    const auto end = std::find_if(line.begin(), line.end(), is_blank);
    out.push_back(line.substr(0, static_cast<std::size_t>(end - line.begin())));
    line.remove_prefix(out.back().size());
  }
  return out;
}

/// A new file with `text`, synced; nothing is left of it after an error.
status write_new(const std::filesystem::path &path, std::string_view text, mode_t mode) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0 && errno == EEXIST)
    return fail(errc::conflict, "'{}' is there already; keys are not replaced: name another folder",
                path.string());
  if (fd < 0)
    return fail(errc::io, "cannot write '{}': {}", path.string(), reason_of(errno));
  int number = 0;
  while (number == 0 && !text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written >= 0)
      text.remove_prefix(static_cast<std::size_t>(written));
    else if (errno != EINTR)
      number = errno;
  }
  if (number == 0 && ::fsync(fd) != 0)
    number = errno;
  ::close(fd);
  if (number == 0)
    return {};
  ::unlink(path.c_str());
  return fail(errc::io, "cannot write '{}': {}; nothing is left of it", path.string(),
              reason_of(number));
}

status make_folder(const std::filesystem::path &folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (!problem && !std::filesystem::is_directory(folder, problem) && !problem)
    problem = std::make_error_code(std::errc::not_a_directory);
  if (problem)
    return fail(errc::io, "cannot make the folder '{}': {}", folder.string(), problem.message());
  return {};
}

result<curve_keys> new_pair() {
  for (;;) {
    key_buffer public_key{};
    key_buffer secret_key{};
    if (::zmq_curve_keypair(public_key.data(), secret_key.data()) != 0)
      return fail(errc::unsupported, "libzmq was built without CURVE: no keys can be made");
    if (public_key.front() != '#') // would be a comment in a list of keys
      return curve_keys{public_key.data(), secret_key.data()};
  }
}

/// A file that holds a key and nothing else.
result<std::string> read_key(const std::filesystem::path &path) {
  auto text = read_file(path, largest_list);
  if (!text)
    return tl::unexpected(std::move(text).error());
  const std::string_view key = trimmed(*text);
  if (!is_curve_key(key))
    return fail(errc::bad_format, "{}: no CURVE key; 40 characters of Z85 are wanted",
                path.string());
  return std::string(key);
}

status check_private(const std::filesystem::path &path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    return fail(errno == ENOENT ? errc::not_found : errc::io,
                "cannot read '{}': {}; millrace keygen makes it", path.string(), reason_of(errno));
  if ((info.st_mode & 077U) != 0)
    return fail(errc::bad_value, "{} can be read by others (mode {:04o}); chmod 600 it",
                path.string(), info.st_mode & 07777U);
  return {};
}

result<std::string> public_key_of(const std::string &secret_key,
                                  const std::filesystem::path &folder) {
  key_buffer out{};
  if (::zmq_curve_public(out.data(), secret_key.c_str()) != 0)
    return fail(errc::bad_format, "{}: not a secret CURVE key", (folder / secret_name).string());
  auto written = read_key(folder / public_name);
  if (written && *written != out.data())
    return fail(errc::bad_value, "{} is not the key that belongs to {}",
                (folder / public_name).string(), secret_name);
  return written;
}

status add_roles(std::string_view text, allowed_peer &out) {
  for (const std::string_view each : split(text, ',')) {
    if (std::find(roles.begin(), roles.end(), each) == roles.end()) {
      const auto guess = nearest(each, roles);
      return fail(errc::bad_format, "unknown role '{}'{}", to_one_line(each),
                  guess ? fmt::format("; did you mean '{}'?", *guess)
                        : "; directory, env-reader, assembler, scorer, planner, packer, trainer "
                          "or * is wanted");
    }
    out.roles.emplace_back(each);
  }
  return {};
}

result<allowed_peer> parse_entry(std::span<const std::string_view> words) {
  allowed_peer out;
  if (!is_curve_key(words[0]))
    return fail(errc::bad_format, "'{}' is no public key; 40 characters of Z85 are wanted",
                to_one_line(words[0]));
  if (words.size() < 2 || words.size() > 3)
    return fail(errc::bad_format, "KEY ROLE[,ROLE...] [NAME] is wanted");
  out.key = words[0];
  MILLRACE_TRY(add_roles(words[1], out));
  out.process = words.size() == 3 ? words[2] : any;
  return out;
}

result<std::vector<allowed_peer>> parse_list(std::string_view text, const std::string &file) {
  std::vector<allowed_peer> out;
  const auto lines = split(text, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto words = words_of(lines[i]);
    if (words.empty())
      continue;
    auto entry = parse_entry(words);
    if (!entry)
      return with_context(std::move(entry).error(), fmt::format("{}:{}", file, i + 1));
    for (const allowed_peer &other : out)
      if (other.key == entry->key)
        return fail(errc::bad_format,
                    "{}:{}: this key has a line already; write all its roles in one", file, i + 1);
    out.push_back(*std::move(entry));
  }
  return out;
}

} // namespace

bool is_curve_key(std::string_view text) noexcept {
  constexpr std::string_view punctuation = ".-:+=^!/*?&<>()[]{}@%$#";
  return text.size() == key_size && std::all_of(text.begin(), text.end(), [&](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  punctuation.find(c) != std::string_view::npos;
         });
}

result<curve_keys> make_keys(const std::filesystem::path &folder) {
  auto made = new_pair();
  if (!made)
    return made;
  MILLRACE_TRY(make_folder(folder));
  const std::array<std::pair<std::filesystem::path, std::string>, 3> files{
      {{folder / secret_name, made->secret_key + "\n"},
       {folder / public_name, made->public_key + "\n"},
       {folder / allowed_name,
        "# Who is let in: KEY ROLE[,ROLE...] [NAME], * is any.\n" + made->public_key + " *\n"}}};
  for (std::size_t i = 0; i < files.size(); ++i) {
    status written = write_new(files[i].first, files[i].second, i == 0 ? 0600 : 0644);
    if (written)
      continue;
    while (i-- > 0)
      ::unlink(files[i].first.c_str());
    return tl::unexpected(std::move(written).error());
  }
  return made;
}

result<curve_config> load_keys(const std::filesystem::path &folder) {
  curve_config out;
  MILLRACE_TRY(check_private(folder / secret_name));
  auto secret_key = read_key(folder / secret_name);
  if (!secret_key)
    return tl::unexpected(std::move(secret_key).error());
  auto public_key = public_key_of(*secret_key, folder);
  if (!public_key)
    return tl::unexpected(std::move(public_key).error());
  out.mine = {*std::move(public_key), *std::move(secret_key)};
  const std::filesystem::path list = folder / allowed_name;
  const auto text = read_file(list, largest_list);
  if (!text)
    return tl::unexpected(text.error());
  auto allowed = parse_list(*text, list.string());
  if (!allowed)
    return tl::unexpected(std::move(allowed).error());
  out.allowed = *std::move(allowed);
  return out;
}

const allowed_peer *find_key(const curve_config &config, std::string_view key) noexcept {
  const auto found = std::find_if(config.allowed.begin(), config.allowed.end(),
                                  [key](const allowed_peer &each) { return each.key == key; });
  return found == config.allowed.end() ? nullptr : &*found;
}

bool allows(const curve_config &config, std::string_view key, std::string_view process,
            std::span<const std::string> roles_claimed) noexcept {
  const allowed_peer *entry = find_key(config, key);
  if (entry == nullptr || (entry->process != any && entry->process != process))
    return false;
  const auto may = [entry](std::string_view role) {
    return std::find(entry->roles.begin(), entry->roles.end(), role) != entry->roles.end();
  };
  return may(any) || std::all_of(roles_claimed.begin(), roles_claimed.end(), may);
}

} // namespace millrace
