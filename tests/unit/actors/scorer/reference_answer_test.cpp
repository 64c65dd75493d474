// SPDX-License-Identifier: Apache-2.0
#include "actors/scorer/reference_answer.hpp"

#include <string>

#include <boost/test/unit_test.hpp>

#include "tests/support/shown.hpp"

using namespace millrace;

namespace {

const std::vector<std::int32_t> prompt{7, 8, 9};
const std::string id = "millrace-1f-3";

template <class Reader> std::string read(Reader &reader, std::string_view text, std::size_t step) {
  for (std::size_t at = 0; at < text.size(); at += step)
    if (const auto fed = reader.feed(text.substr(at, step)); !fed)
      return fed.error().message;
  const auto got = reader.finish();
  return got ? test::shown(*got) : got.error().message;
}

/// The values of an answer to `prompt`, or the error.
std::string values(std::string_view text, std::size_t step = 7) {
  prompt_logprobs_reader reader(prompt, id);
  return read(reader, text, step);
}

std::string tokens(std::string_view text) {
  token_list_reader reader(3);
  return read(reader, text, 1);
}

/// An answer whose list of positions is this.
std::string answer(std::string_view positions) {
  return fmt::format(R"({{"choices":[{{"prompt_logprobs":[{}]}}]}})", positions);
}

constexpr std::string_view good = R"(null,{"8":{"logprob":-0.5}},{"9":{"logprob":-1e-3}})";

} // namespace

BOOST_AUTO_TEST_SUITE(reference_answers)

BOOST_AUTO_TEST_CASE(each_token_gets_its_own_value_however_the_answer_is_cut) {
  const auto text =
      std::string(R"({"id":"cmpl-millrace-1f-3-0","model":"m","choices":[{"index":0,"text":"}",)") +
      R"("logprobs":{"prompt_logprobs":[1]},"prompt_logprobs":[null,)" +
      R"({"1":{"logprob":-9,"rank":1},"8":{"rank":2,"logprob":-0.5,"decoded_token":"a\"b"}},)" +
      R"({"9":{"logprob":-0.25,"rank":1,"decoded_token":"]"}}],"prompt_token_ids":[7,8,9]}],)" +
      R"("usage":{"choices":[]}})";
  for (std::size_t step = 1; step <= text.size(); ++step)
    BOOST_TEST(values(text, step) == "0 -0.5 -0.25");
}

BOOST_AUTO_TEST_CASE(another_length_is_refused) {
  BOOST_TEST(values(answer(R"(null,{"8":{"logprob":-1}})")) ==
             "prompt_logprobs[2]: the list ends there, the prompt has 3 tokens");
  BOOST_TEST(values(answer(std::string(good) + ",null")) ==
             "prompt_logprobs[3]: the list goes on, the prompt has 3 tokens");
  BOOST_TEST(values(answer("")).find("the list ends there") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(only_the_first_position_is_null) {
  BOOST_TEST(values(answer(R"(null,null,{"9":{"logprob":-1}})")) ==
             "prompt_logprobs[1]: it is null, not an object");
  BOOST_TEST(values(answer(R"({"7":{"logprob":-1}})")).find("null is due") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_value_that_is_no_finite_logprob_is_refused) {
  const auto with = [](std::string_view value) {
    return values(answer(fmt::format(R"(null,{{"8":{{"logprob":{}}}}})", value)));
  };
  BOOST_TEST(with("NaN").find("prompt_logprobs[1]: 'NaN' is not JSON") == 0);
  BOOST_TEST(with("-Infinity").find("prompt_logprobs[1]: '-Infinity' is not JSON") == 0);
  BOOST_TEST(with("null") == "prompt_logprobs[1]: logprob is null, not a number");
  BOOST_TEST(with("\"-1\"") == "prompt_logprobs[1]: logprob is a string, not a number");
  BOOST_TEST(with("-1e999") == "prompt_logprobs[1]: logprob -1e999 is not finite");
  BOOST_TEST(with("-1e39") == "prompt_logprobs[1]: logprob -1e39 is not finite");
  BOOST_TEST(with("-9999.0") ==
             "prompt_logprobs[1]: -9999 is what a server gives in place of -inf");
  BOOST_TEST(with("12.5").find("prompt_logprobs[1]: 12.5 is above 0") == 0);
  BOOST_TEST(with("[-1]") == "prompt_logprobs[1]: logprob is a list, not a number");
}

BOOST_AUTO_TEST_CASE(an_answer_for_other_tokens_is_refused) {
  BOOST_TEST(values(answer(R"(null,{"5":{"logprob":-1}})")) ==
             "prompt_logprobs[1]: it has no logprob of token 8: the answer is for another prompt");
  BOOST_TEST(values(answer("null,{}")).find("no logprob of token 8") != std::string::npos);
  BOOST_TEST(values(answer(R"(null,{"8":{"rank":1}})")) ==
             "prompt_logprobs[1]: token 8 has no logprob");
  BOOST_TEST(values(answer(R"(null,{"8":-1})")) ==
             "prompt_logprobs[1]: token 8 is -1, not an object");
}

BOOST_AUTO_TEST_CASE(an_answer_with_the_id_of_another_request_is_refused) {
  const auto with = [](std::string_view found) {
    return values(
        fmt::format(R"({{"id":{},"choices":[{{"prompt_logprobs":[{}]}}]}})", found, good));
  };
  BOOST_TEST(with("\"cmpl-millrace-1f-3\"") == "0 -0.5 -0.001");
  BOOST_TEST(with("\"cmpl-a-server's own\"") == "0 -0.5 -0.001");
  BOOST_TEST(with("null") == "0 -0.5 -0.001");
  BOOST_TEST(with("\"cmpl-millrace-1f-4\"") ==
             "it answers request 'cmpl-millrace-1f-4', not 'millrace-1f-3'");
  BOOST_TEST(with("\"cmpl-millrace-1f-31\"").find("it answers request") == 0);
  BOOST_TEST(with("\"cmpl-millrace-2e-3\"").find("it answers request") == 0);
}

BOOST_AUTO_TEST_CASE(a_key_that_stands_there_twice_is_refused) {
  BOOST_TEST(values(answer(R"(null,{"8":{"logprob":-1},"8":{"logprob":-2}})")) ==
             "prompt_logprobs[1]: '8' stands there twice");
  BOOST_TEST(values(answer(R"(null,{"8":{"logprob":-1,"logprob":-2}})")) ==
             "prompt_logprobs[1]: 'logprob' stands there twice");
  BOOST_TEST(values(R"({"choices":[{"prompt_logprobs":[],"prompt_logprobs":[]}]})")
                 .find("prompt_logprobs[0]: the list ends there") == 0);
  BOOST_TEST(values(fmt::format(R"({{"choices":[{{"prompt_logprobs":[{0}],"prompt_logprobs":[{0}])",
                                good)) == "'prompt_logprobs' stands there twice");
  BOOST_TEST(values(R"({"choices":[],"choices":[]})") == "'choices' stands there twice");
  BOOST_TEST(values(R"({"id":"a","id":"b"})") == "'id' stands there twice");
}

BOOST_AUTO_TEST_CASE(an_answer_without_what_was_asked_for_is_refused) {
  BOOST_TEST(values(R"({"object":"error"})") == "the answer has no choices[0]");
  BOOST_TEST(values(R"({"choices":[]})") == "the answer has no choices[0]");
  BOOST_TEST(values(R"({"choices":[{"text":"x"}]})") ==
             "the answer has no choices[0].prompt_logprobs");
  BOOST_TEST(values(R"({"choices":[{"prompt_logprobs":null}]})") ==
             "prompt_logprobs is null, not a list");
  BOOST_TEST(values(R"({"choices":{}})") == "choices is an object, not a list");
  BOOST_TEST(values(R"({"choices":[1]})") == "choices[0] is 1, not an object");
  BOOST_TEST(values("[]") == "the answer is a list, not an object");
  BOOST_TEST(values(fmt::format(R"({{"choices":[{{"prompt_logprobs":[{}]}},{{}}]}})", good)) ==
             "there are two choices, one was asked for");
}

BOOST_AUTO_TEST_CASE(bytes_after_the_answer_are_refused) {
  BOOST_TEST(values(answer(good) + "{}").find("'{' follows the end of the value") == 0);
  BOOST_TEST(values(answer(good) + " \r\n") == "0 -0.5 -0.001");
}

BOOST_AUTO_TEST_CASE(an_answer_that_ends_early_is_refused) {
  const auto text = answer(good);
  for (std::size_t size = 0; size < text.size(); ++size)
    BOOST_TEST(values(text.substr(0, size)).find("0 ") != 0);
}

BOOST_AUTO_TEST_CASE(a_list_of_tokens_is_read_from_among_other_fields) {
  BOOST_TEST(tokens(R"({"count":2,"max":[9],"tokens":[5,0],"token_strs":["a","b"]})") == "5 0");
  BOOST_TEST(tokens(R"({"a":{"tokens":[1]},"tokens":[]})") == "");
}

BOOST_AUTO_TEST_CASE(a_list_of_anything_but_token_ids_is_refused) {
  BOOST_TEST(tokens("{}") == "the answer has no tokens");
  BOOST_TEST(tokens(R"({"tokens":null})") == "tokens is null, not a list");
  BOOST_TEST(tokens(R"({"tokens":{"a":1}})") == "tokens is an object, not a list");
  BOOST_TEST(tokens(R"({"tokens":[1,2.5]})") == "tokens[1] is 2.5, not a token id");
  BOOST_TEST(tokens(R"({"tokens":[-1]})") == "tokens[0] is -1, not a token id");
  BOOST_TEST(tokens(R"({"tokens":[[1]]})") == "tokens[0] is a list, not a token id");
  BOOST_TEST(tokens(R"({"tokens":[3000000000]})") == "tokens[0] is 3000000000, not a token id");
  BOOST_TEST(tokens(R"({"tokens":[1,2,3,4]})") == "tokens has more than 3 entries");
  BOOST_TEST(tokens(R"({"tokens":[1],"tokens":[1]})") == "'tokens' stands there twice");
}

BOOST_AUTO_TEST_SUITE_END()
