// SPDX-License-Identifier: Apache-2.0
#include "transport/link_header.hpp"

#include <cstring>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "schema/body.hpp"

using namespace millrace;

namespace {

link_header some_hello() {
  link_header hello{.kind = link_kind::hello, .where = lane::data, .session = 77};
  hello.identity = {.run = "r",
                    .process = "scorer-1",
                    .roles = {"scorer", "packer"},
                    .incarnation = 9,
                    .program = "0.1.0",
                    .config = "abc"};
  return hello;
}

errc refusal_of(const link_header &header, std::size_t parts = 0) {
  const auto parsed = parse_link_header(encode(header, parts).bytes(), parts);
  BOOST_REQUIRE(!parsed);
  return parsed.error().code;
}

BOOST_AUTO_TEST_SUITE(link_headers)

BOOST_AUTO_TEST_CASE(a_hello_comes_back_as_it_was) {
  const auto parsed = parse_link_header(encode(some_hello()).bytes(), 0);
  BOOST_REQUIRE(parsed);
  BOOST_TEST((parsed->kind == link_kind::hello && parsed->where == lane::data));
  BOOST_TEST(parsed->session == 77U);
  BOOST_REQUIRE(parsed->identity);
  BOOST_TEST(parsed->identity->run == "r");
  BOOST_TEST(parsed->identity->process == "scorer-1");
  BOOST_TEST(parsed->identity->roles == (std::vector<std::string>{"scorer", "packer"}),
             boost::test_tools::per_element());
  BOOST_TEST(parsed->identity->incarnation == 9U);
  BOOST_TEST(parsed->identity->program == "0.1.0");
  BOOST_TEST(parsed->identity->config == "abc");
}

BOOST_AUTO_TEST_CASE(answers_come_back_as_they_were) {
  const link_header in{.kind = link_kind::heartbeat,
                       .session = 1,
                       .control_received = 2,
                       .data_session = 3,
                       .data_received = 4,
                       .data_credit = 5,
                       .data_wanted = 6};
  const auto out = parse_link_header(encode(in).bytes(), 0);
  BOOST_REQUIRE(out);
  BOOST_TEST(out->control_received == 2U);
  BOOST_TEST(out->data_session == 3U);
  BOOST_TEST(out->data_received == 4U);
  BOOST_TEST(out->data_credit == 5U);
  BOOST_TEST(out->data_wanted == 6U);
}

BOOST_AUTO_TEST_CASE(a_header_is_read_at_any_address) {
  const auto encoded = encode(some_hello());
  for (std::size_t shift = 0; shift < 8; ++shift) {
    std::vector<std::byte> memory(encoded.size() + shift);
    std::memcpy(memory.data() + shift, encoded.data(), encoded.size());
    BOOST_TEST(parse_link_header(std::span(memory).subspan(shift), 0).has_value());
  }
}

BOOST_AUTO_TEST_CASE(no_cut_off_header_is_read) {
  const auto encoded = encode(some_hello());
  for (std::size_t size = 0; size + 3 < encoded.size(); ++size) // the last are padding
    BOOST_TEST(!parse_link_header(encoded.bytes().first(size), 0));
}

BOOST_AUTO_TEST_CASE(the_number_of_parts_must_be_what_came) {
  const link_header in{.kind = link_kind::payload, .session = 1, .number = 1, .id = 1};
  BOOST_TEST(parse_link_header(encode(in, 3).bytes(), 3).has_value());
  BOOST_TEST(!parse_link_header(encode(in, 3).bytes(), 2));
  BOOST_TEST((refusal_of(some_hello(), 1) == errc::bad_value)); // a hello has no parts
}

BOOST_AUTO_TEST_CASE(what_a_kind_needs_must_be_there) {
  BOOST_TEST((refusal_of({.kind = link_kind::hello, .session = 1}) == errc::bad_value));
  BOOST_TEST((refusal_of({.kind = link_kind::payload, .number = 1, .id = 1}) == errc::bad_value));
  BOOST_TEST((refusal_of({.kind = link_kind::payload, .session = 1, .id = 1}) == errc::bad_value));
  BOOST_TEST(
      (refusal_of({.kind = link_kind::payload, .session = 1, .number = 1}) == errc::bad_value));
  BOOST_TEST((refusal_of({.kind = link_kind::request}) == errc::bad_value));
  auto nobody = some_hello();
  nobody.identity->process.clear();
  BOOST_TEST((refusal_of(nobody) == errc::bad_value));
}

BOOST_AUTO_TEST_CASE(texts_and_lists_have_limits) {
  auto long_name = some_hello();
  long_name.identity->process.assign(5000, 'x');
  BOOST_TEST((refusal_of(long_name) == errc::too_large));
  auto many_roles = some_hello();
  many_roles.identity->roles.assign(65, "r");
  BOOST_TEST((refusal_of(many_roles) == errc::too_large));
  const std::vector<std::byte> huge(100'000);
  const auto parsed = parse_link_header(huge, 0);
  BOOST_TEST((!parsed && parsed.error().code == errc::too_large));
}

BOOST_AUTO_TEST_CASE(a_long_reason_is_cut) {
  const link_header in{.kind = link_kind::refusal, .reason = std::string(10'000, 'x')};
  BOOST_TEST(parse_link_header(encode(in).bytes(), 0).has_value());
}

BOOST_AUTO_TEST_CASE(another_version_is_unsupported_and_names_both) {
  flatbuffers::FlatBufferBuilder builder;
  const auto root = wire::CreateLinkHeader(builder, 2, wire::LinkKind::Heartbeat);
  const auto parsed = parse_link_header(finish_body<wire::LinkHeader>(builder, root).bytes(), 0);
  BOOST_REQUIRE(!parsed);
  BOOST_TEST((parsed.error().code == errc::unsupported));
  BOOST_TEST(parsed.error().message == "link protocol version 2, this process speaks 1");
}

BOOST_AUTO_TEST_CASE(an_unknown_kind_or_lane_is_refused) {
  for (const auto &[kind, where] : {std::pair{7, 0}, std::pair{3, 2}}) {
    flatbuffers::FlatBufferBuilder builder;
    const auto root = wire::CreateLinkHeader(builder, 1, static_cast<wire::LinkKind>(kind),
                                             static_cast<wire::LinkLane>(where));
    const auto parsed = parse_link_header(finish_body<wire::LinkHeader>(builder, root).bytes(), 0);
    BOOST_TEST((!parsed && parsed.error().code == errc::bad_value));
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
