// SPDX-License-Identifier: Apache-2.0
#include "transport/curve.hpp"

#include <csignal>
#include <fstream>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/file.hpp"
#include "tests/support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

namespace millrace {
namespace {

/// Keys as a person may have them; Z85, and no pair.
const std::string first = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
const std::string second = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID";

std::string text_of(const std::filesystem::path &path) { return read_file(path, 1 << 20).value(); }

mode_t mode_of(const std::filesystem::path &path) {
  struct stat info {};
  BOOST_REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777U;
}

/// A folder of keys whose list of those let in is `allowed`.
class key_folder {
public:
  explicit key_folder(const std::string &allowed) {
    keys_ = make_keys(path()).value();
    std::ofstream(path() / "allowed") << allowed;
  }
  std::filesystem::path path() const { return folder_ / "keys"; }
  const curve_keys &keys() const { return keys_; }
  result<curve_config> load() const { return load_keys(path()); }
  std::string refusal() const {
    const auto got = load();
    return got ? "(taken)" : got.error().message;
  }

private:
  test::temporary_folder folder_;
  curve_keys keys_;
};

bool mentions(const std::string &message, std::string_view part) {
  return message.find(part) != std::string::npos;
}

BOOST_AUTO_TEST_SUITE(curve)

BOOST_AUTO_TEST_CASE(new_keys_load_and_let_themselves_in_as_anything) {
  const test::temporary_folder folder;
  const auto keys = make_keys(folder / "a/b").value();
  const auto config = load_keys(folder / "a/b").value();
  BOOST_TEST(config.mine.public_key == keys.public_key);
  BOOST_TEST(config.mine.secret_key == keys.secret_key);
  const std::vector<std::string> all{"scorer", "trainer"};
  BOOST_TEST(allows(config, keys.public_key, "anyone", all));
}

BOOST_AUTO_TEST_CASE(every_key_is_another_one) {
  const test::temporary_folder folder;
  BOOST_TEST(make_keys(folder / "a").value().secret_key !=
             make_keys(folder / "b").value().secret_key);
}

BOOST_AUTO_TEST_CASE(only_the_owner_can_read_the_secret_key) {
  const test::temporary_folder folder;
  const auto before = ::umask(0);
  BOOST_REQUIRE(make_keys(folder / "a"));
  ::umask(before);
  BOOST_TEST(mode_of(folder / "a/secret.key") == 0600U);
  BOOST_TEST(mode_of(folder / "a/public.key") == 0644U);
}

BOOST_AUTO_TEST_CASE(keys_that_are_there_are_not_replaced) {
  const test::temporary_folder folder;
  BOOST_REQUIRE(make_keys(folder / "a"));
  const std::string before = text_of(folder / "a/secret.key");
  for (const char *file : {"", "secret.key", "public.key"}) {
    if (*file != '\0')
      std::filesystem::remove(folder / "a" / file);
    const auto again = make_keys(folder / "a");
    BOOST_REQUIRE(!again);
    BOOST_TEST((again.error().code == errc::conflict), file);
  }
  BOOST_TEST(!std::filesystem::exists(folder / "a/secret.key"));
}

BOOST_AUTO_TEST_CASE(a_disk_that_is_full_leaves_no_half_a_pair) {
  const test::temporary_folder folder;
  rlimit before{};
  BOOST_REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{50, before.rlim_max}; // the keys fit, the list does not
  BOOST_REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const auto got = make_keys(folder / "a");
  BOOST_REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, ignored);
  BOOST_REQUIRE(!got);
  BOOST_TEST((got.error().code == errc::io));
  BOOST_TEST(std::filesystem::is_empty(folder / "a"));
}

BOOST_AUTO_TEST_CASE(a_file_in_the_place_of_the_folder_is_named) {
  const test::temporary_folder folder;
  std::ofstream(folder / "a") << "x";
  BOOST_TEST(mentions(make_keys(folder / "a").error().message, (folder / "a").string()));
  BOOST_TEST(mentions(make_keys(folder / "a/b").error().message, (folder / "a/b").string()));
}

BOOST_AUTO_TEST_CASE(a_secret_key_that_others_can_read_is_refused_and_told_how_to_mend_it) {
  const key_folder folder("");
  for (const mode_t mode : {0640U, 0604U, 0660U, 0644U, 0610U}) {
    BOOST_REQUIRE(::chmod((folder.path() / "secret.key").c_str(), mode) == 0);
    BOOST_TEST((folder.load().error().code == errc::bad_value));
    BOOST_TEST(mentions(folder.refusal(), "chmod 600"));
    BOOST_TEST(mentions(folder.refusal(), fmt::format("{:04o}", mode)));
  }
  BOOST_REQUIRE(::chmod((folder.path() / "secret.key").c_str(), 0400) == 0);
  BOOST_TEST(folder.load().has_value());
}

BOOST_AUTO_TEST_CASE(each_missing_file_is_named) {
  for (const char *file : {"secret.key", "public.key", "allowed"}) {
    const key_folder folder("");
    std::filesystem::remove(folder.path() / file);
    BOOST_TEST((folder.load().error().code == errc::not_found), file);
    BOOST_TEST(mentions(folder.refusal(), (folder.path() / file).string()));
  }
}

BOOST_AUTO_TEST_CASE(a_key_file_without_a_key_is_named) {
  for (const char *file : {"secret.key", "public.key"})
    for (const std::string &text :
         {std::string(), std::string("short"), first + "x", first.substr(1), first + " " + second,
          std::string(40, '~'), std::string(40, '\0')}) {
      const key_folder folder("");
      std::ofstream(folder.path() / file) << text;
      BOOST_TEST((folder.load().error().code == errc::bad_format), file << ": " << text);
      BOOST_TEST(mentions(folder.refusal(), (folder.path() / file).string()));
    }
}

BOOST_AUTO_TEST_CASE(a_public_key_of_another_pair_is_refused) {
  const key_folder folder("");
  std::ofstream(folder.path() / "public.key") << first;
  BOOST_TEST((folder.load().error().code == errc::bad_value));
}

BOOST_AUTO_TEST_CASE(the_list_takes_comments_blank_lines_and_names) {
  const auto config =
      key_folder("# first line\n\n  \t\n" + first + " scorer\n#" + second + " planner\n" + second +
                 "\tpacker,trainer  gpu-1 # the big one\r\n")
          .load()
          .value();
  BOOST_REQUIRE(config.allowed.size() == 2U);
  BOOST_TEST(config.allowed[0].process == "*");
  BOOST_TEST(config.allowed[1].key == second);
  BOOST_TEST(config.allowed[1].roles.size() == 2U);
  BOOST_TEST(config.allowed[1].process == "gpu-1");
}

BOOST_AUTO_TEST_CASE(a_line_that_is_none_is_named_with_its_file_and_number) {
  const std::string good = first + " scorer\n";
  for (const std::string &bad :
       {std::string("nonsense"), second, second + " scorer name more", second + " scorer,",
        second + " ,", second + "x scorer", "scorer " + second}) {
    const key_folder folder(good + bad + "\n");
    BOOST_TEST((folder.load().error().code == errc::bad_format), bad);
    BOOST_TEST(mentions(folder.refusal(), (folder.path() / "allowed").string() + ":2: "), bad);
  }
}

BOOST_AUTO_TEST_CASE(an_unknown_role_is_named_with_the_nearest) {
  BOOST_TEST(mentions(key_folder(first + " scorer,paker\n").refusal(),
                      "unknown role 'paker'; did you mean 'packer'?"));
  BOOST_TEST(mentions(key_folder(first + " zzzzzzz\n").refusal(), "env-reader"));
}

BOOST_AUTO_TEST_CASE(a_key_that_is_listed_twice_is_refused) {
  BOOST_TEST(
      mentions(key_folder(first + " scorer\n" + second + " *\n" + first + " packer\n").refusal(),
               ":3: this key has a line already"));
}

BOOST_AUTO_TEST_CASE(an_empty_list_lets_nobody_in) {
  const key_folder folder("");
  const auto config = folder.load().value();
  BOOST_TEST(find_key(config, folder.keys().public_key) == nullptr);
  BOOST_TEST(!allows(config, folder.keys().public_key, "a", {}));
}

BOOST_AUTO_TEST_CASE(a_key_is_held_to_its_roles_and_its_name) {
  curve_config config;
  config.allowed = {{first, {"scorer", "packer"}, "a"}, {second, {"*"}, "*"}};
  const std::vector<std::string> scorer{"scorer"};
  const std::vector<std::string> both{"packer", "scorer"};
  const std::vector<std::string> more{"scorer", "planner"};
  BOOST_TEST(allows(config, first, "a", scorer));
  BOOST_TEST(allows(config, first, "a", both));
  BOOST_TEST(!allows(config, first, "a", more));
  BOOST_TEST(!allows(config, first, "b", scorer));
  BOOST_TEST(allows(config, second, "b", more));
  BOOST_TEST(!allows(config, first.substr(1), "a", scorer));
}

BOOST_AUTO_TEST_CASE(a_key_is_found_by_all_of_its_characters) {
  curve_config config;
  config.allowed = {{first, {"*"}, "*"}};
  BOOST_TEST(find_key(config, first) == &config.allowed[0]);
  BOOST_TEST(find_key(config, second) == nullptr);
  BOOST_TEST(find_key(config, "") == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace
