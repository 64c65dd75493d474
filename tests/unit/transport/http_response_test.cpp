// SPDX-License-Identifier: Apache-2.0
#include "transport/http_response.hpp"

#include <string>

#include <boost/test/unit_test.hpp>

using namespace millrace;

namespace {

/// "STATUS TYPE|BODY" of an answer that comes `step` bytes at a time, "..." while more is wanted;
/// or the error.
std::string read(std::string_view text, std::size_t step = 1, std::uint64_t most = 1000) {
  std::string out;
  const http_receiver to{.head = [&](const http_head &head) -> status {
                           out = fmt::format("{} {}|", head.status, head.content_type);
                           return {};
                         },
                         .body = [&](std::string_view piece) -> status {
                           out += piece;
                           return {};
                         }};
  http_response_reader reader(most);
  for (std::size_t at = 0; at < text.size(); at += step)
    if (const auto fed = reader.feed(text.substr(at, step), to); !fed)
      return fed.error().message;
  return out + (reader.complete() ? "" : "...");
}

const std::string ok = "HTTP/1.1 200 OK\r\n";

/// What the end of the connection says after these bytes.
std::string end_after(std::string_view text) {
  http_response_reader reader(1000);
  BOOST_TEST(reader.feed(text, {}).has_value());
  const auto ended = reader.finish();
  return ended ? "complete" : ended.error().message;
}

} // namespace

BOOST_AUTO_TEST_SUITE(http_responses)

BOOST_AUTO_TEST_CASE(a_body_of_known_length_is_read_however_it_is_cut) {
  const auto text = ok + "content-TYPE:  application/json \r\nContent-Length: 5\r\n\r\nhello";
  for (std::size_t step = 1; step <= text.size(); ++step)
    BOOST_TEST(read(text, step) == "200 application/json|hello");
}

BOOST_AUTO_TEST_CASE(a_chunked_body_is_joined_however_it_is_cut) {
  const auto text = ok + "Transfer-Encoding: chunked\r\n\r\n"
                         "3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer: z\r\n\r\n";
  for (std::size_t step = 1; step <= text.size(); ++step)
    BOOST_TEST(read(text, step) == "200 |hello");
}

BOOST_AUTO_TEST_CASE(a_body_without_a_length_ends_with_the_connection) {
  BOOST_TEST(read(ok + "\r\nhello") == "200 |hello...");
  BOOST_TEST(end_after(ok + "\r\nhello") == "complete");
}

BOOST_AUTO_TEST_CASE(an_empty_body_is_complete_with_the_head) {
  BOOST_TEST(read("HTTP/1.0 503 x\r\nContent-Length: 0\r\n\r\n") == "503 |");
}

BOOST_AUTO_TEST_CASE(an_interim_answer_is_passed_over) {
  BOOST_TEST(read("HTTP/1.1 100 Continue\r\n\r\n" + ok + "Content-Length: 1\r\n\r\nx") == "200 |x");
}

BOOST_AUTO_TEST_CASE(a_connection_that_ends_early_is_said_to_be_lost) {
  BOOST_TEST(end_after("") == "the connection ended without an answer");
  BOOST_TEST(end_after(ok + "Content-") == "the connection ended in the head of an answer");
  BOOST_TEST(end_after(ok + "Content-Length: 9\r\n\r\nhello") ==
             "the connection ended after 5 bytes of the answer");
  BOOST_TEST(end_after(ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n") ==
             "the connection ended after 5 bytes of the answer");
}

BOOST_AUTO_TEST_CASE(bytes_after_the_end_are_refused) {
  BOOST_TEST(read(ok + "Content-Length: 1\r\n\r\nxyz") ==
             "bytes follow the end of the answer: 'y'");
}

BOOST_AUTO_TEST_CASE(a_body_over_its_bound_is_refused_however_it_comes) {
  const std::string body(11, 'x');
  BOOST_TEST(read(ok + "Content-Length: 11\r\n\r\n", 1, 10) ==
             "the answer has 11 bytes, at most 10 are expected");
  BOOST_TEST(read(ok + "\r\n" + body, 1, 10) ==
             "the answer has more than the 10 bytes that are expected");
  BOOST_TEST(read(ok + "Transfer-Encoding: chunked\r\n\r\nb\r\n" + body, 100, 10) ==
             "the answer has more than the 10 bytes that are expected");
  BOOST_TEST(read(ok + "Content-Length: 10\r\n\r\n" + body.substr(1), 1, 10) == "200 |xxxxxxxxxx");
}

BOOST_AUTO_TEST_CASE(a_head_without_an_end_is_refused_before_it_grows) {
  const std::string most(http_response_reader::most_head, 'x');
  const auto refused = "the head of the answer has more than 32768 bytes";
  BOOST_TEST(read("HTTP/1.1 200 " + most, 1000) == refused);
  BOOST_TEST(read(ok + "A: " + most, 1000) == refused);
  std::string lines = ok;
  while (lines.size() < most.size())
    lines += "A: b\r\n";
  BOOST_TEST(read(lines, 1000) == refused);
  BOOST_TEST(read(ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + lines, 1000) == refused);
}

BOOST_AUTO_TEST_CASE(what_is_not_http_is_refused_with_how_it_begins) {
  BOOST_TEST(read("SSH-2.0-x\r\n") == "the answer is not HTTP/1.1: it begins with 'SSH-2.0-x'");
  for (const char *line :
       {"HTTP/1.1 2x0 OK", "HTTP/1.1", "HTTP/2 200", "HTTP/1.1 99 x", "HTTP/1.1 2000 x", ""})
    BOOST_TEST(read(std::string(line) + "\r\n").find("is not HTTP/1.1") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(headers_that_leave_the_length_open_are_refused) {
  const auto with = [](const std::string &headers) { return read(ok + headers + "\r\n\r\n"); };
  BOOST_TEST(with("Content-Length: 1\r\nContent-Length: 2") == "content-length is '2'");
  BOOST_TEST(with("Content-Length: -1") == "content-length is '-1'");
  BOOST_TEST(with("Content-Length: 1\r\nTransfer-Encoding: chunked") ==
             "the answer has a content-length and is chunked");
  BOOST_TEST(with("Transfer-Encoding: gzip").find("only chunked is known") != std::string::npos);
  BOOST_TEST(with("Content-Encoding: gzip") == "content-encoding 'gzip', which was not asked for");
  BOOST_TEST(with("Content-Length : 5") == "'Content-Length : 5' is not a header");
  BOOST_TEST(with(" folded: x") == "' folded: x' is not a header");
}

BOOST_AUTO_TEST_CASE(a_chunk_of_another_size_than_it_says_is_refused) {
  const auto chunks = [](const std::string &text) {
    return read(ok + "Transfer-Encoding: chunked\r\n\r\n" + text);
  };
  BOOST_TEST(chunks("3\r\nhello\r\n") == "a chunk of the answer is longer than its size says");
  BOOST_TEST(chunks("x\r\n") == "'x' is not the size of a chunk");
  BOOST_TEST(chunks("\r\n") == "'' is not the size of a chunk");
  BOOST_TEST(chunks("fffffffffffffffff\r\n").find("is not the size") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
