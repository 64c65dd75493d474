// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/safetensors.hpp"

#include <array>
#include <cstring>
#include <string>

#include <boost/test/unit_test.hpp>

#include "runtime/file.hpp"
#include "tests/support/temporary_folder.hpp"

namespace millrace::test {
namespace {

struct tensors_fixture {
  temporary_folder folder;
  std::filesystem::path path = folder / "some.safetensors";
  std::array<double, 6> numbers{1, 2.5, -3, 0, 1e300, 7};
  std::array<std::uint8_t, 3> bytes{1, 0, 255};
  std::array<tensor_item, 3> items{
      tensor_item{"numbers", true, dtype::float64, {2, 3}, std::as_bytes(std::span(numbers))},
      tensor_item{"left out", false, dtype::int64, {}, {}},
      tensor_item{"bytes", true, dtype::uint8, {3}, std::as_bytes(std::span(bytes))}};

  void write(std::string_view header, std::string_view values = "12345678") {
    const std::uint64_t size = header.size();
    std::string text(sizeof size, '\0');
    std::memcpy(text.data(), &size, sizeof size);
    BOOST_REQUIRE(write_file_atomically(path, text + std::string(header) + std::string(values)));
  }
  error refusal() {
    const auto read = read_safetensors(path);
    BOOST_TEST_REQUIRE(!read.has_value());
    BOOST_TEST(read.error().message.find(path.string()) != std::string::npos);
    return read.error();
  }
};

BOOST_FIXTURE_TEST_SUITE(files_of_tensors, tensors_fixture)

BOOST_AUTO_TEST_CASE(what_was_written_is_read_again) {
  BOOST_REQUIRE(write_safetensors(path, {{"step", "7"}}, items));
  const auto read = read_safetensors(path).value();
  BOOST_TEST(read.metadata.at("step") == "7");
  BOOST_REQUIRE_EQUAL(read.items.size(), 2);
  const auto *found = read.find("numbers");
  BOOST_REQUIRE(found != nullptr);
  BOOST_TEST((found->type == dtype::float64));
  BOOST_TEST((found->shape == std::vector<std::uint64_t>{2, 3}));
  BOOST_REQUIRE_EQUAL(found->bytes.size(), sizeof numbers);
  BOOST_TEST(std::memcmp(found->bytes.data(), numbers.data(), sizeof numbers) == 0);
  BOOST_TEST(std::memcmp(read.find("bytes")->bytes.data(), bytes.data(), sizeof bytes) == 0);
  BOOST_TEST(read.find("left out") == nullptr);
}

BOOST_AUTO_TEST_CASE(a_file_that_is_cut_anywhere_is_refused) {
  BOOST_REQUIRE(write_safetensors(path, {}, items));
  const auto whole = read_file(path, 4096).value();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    BOOST_REQUIRE(write_file_atomically(path, std::string_view(whole).substr(0, size)));
    BOOST_TEST((refusal().code == errc::bad_format), "cut to " << size);
  }
}

BOOST_AUTO_TEST_CASE(a_tensor_that_lies_outside_or_has_another_size_than_it_says_is_named) {
  const auto refused = [&](std::string_view entry, std::string_view why) {
    write(fmt::format(R"({{"t":{}}})", entry));
    const auto found = refusal().message;
    BOOST_TEST(found.find("tensor 't'") != std::string::npos, found);
    BOOST_TEST(found.find(why) != std::string::npos, found);
  };
  refused(R"({"dtype":"U8","shape":[9],"data_offsets":[0,9]})", "data_offsets");
  refused(R"({"dtype":"U8","shape":[2],"data_offsets":[4,2]})", "data_offsets");
  refused(R"({"dtype":"U8","shape":[1],"data_offsets":[0]})", "data_offsets");
  refused(R"({"dtype":"F64","shape":[2],"data_offsets":[0,8]})", "wants 16 bytes");
  refused(R"({"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,8]})", "memory");
  refused(R"({"dtype":"U8","shape":[-8],"data_offsets":[0,8]})", "shape");
  refused(R"({"dtype":"C64","shape":[1],"data_offsets":[0,8]})", "C64");
  refused(R"({"shape":[1],"data_offsets":[0,8]})", "dtype");
  refused(R"(7)", "");
}

BOOST_AUTO_TEST_CASE(a_header_that_is_no_json_or_longer_than_the_file_is_refused) {
  write("{");
  BOOST_TEST((refusal().code == errc::bad_format));
  BOOST_REQUIRE(write_file_atomically(path, std::string("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10)));
  BOOST_TEST((refusal().code == errc::bad_format));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace millrace::test
