// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <functional>
#include <set>

#include "actors/trainer/micro_batch_digest.hpp"

using namespace millrace;

namespace {

template <class T, class V> void set(host_array<T> &array, const std::vector<V> &values) {
  const auto out = array.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    out[i] = static_cast<T>(values[i]);
}

/// The test vector of docs/formats.md: three tokens in two sequences, one token of padding.
micro_batch_tensors example() {
  micro_batch_tensors t;
  t.step = 3;
  t.rank = 1;
  t.index = 2;
  t.padding = 1;
  set(t.input_ids, std::vector<std::int64_t>{10, 11, 12, 1});
  set(t.loss_mask, std::vector<int>{0, 1, 1, 0});
  set(t.advantages, std::vector<float>{0, 0.5F, -1, 0});
  set(t.inference_logprobs, std::vector<float>{0, -0.25F, -2, 0});
  set(t.position_ids, std::vector<std::int64_t>{0, 1, 0, 0});
  set(t.temperatures, std::vector<float>{1, 1, 0.5F, 1});
  set(t.sequence_lengths, std::vector<std::int64_t>{2, 2});
  set(t.seq_lens, std::vector<std::int64_t>{2, 2});
  t.env_names = {"math", "code"};
  set(t.rl_weights, std::vector<float>{1, 1, 0, 0});
  t.routed_experts.type = dtype::uint8;
  t.routed_experts.shape = {4, 1, 2};
  set(t.routed_experts.bytes, std::vector<int>{1, 2, 3, 4, 5, 6, 0, 0});
  return t;
}

void set_int32(array_tensor &array, const std::vector<std::int32_t> &values) {
  array.type = dtype::int32;
  array.shape = {values.size()};
  std::ranges::copy(std::as_bytes(std::span(values)),
                    array.bytes.resize(values.size() * sizeof(std::int32_t)).begin());
}

void set_kept(micro_batch_tensors &t, const std::vector<std::int32_t> &counts,
              const std::vector<std::int32_t> &ids) {
  set_int32(t.kept_counts, counts);
  set_int32(t.kept_ids, ids);
}

} // namespace

BOOST_AUTO_TEST_SUITE(content_digest)

BOOST_AUTO_TEST_CASE(the_documented_test_vector_holds) {
  const auto got = digest_of(example());
  BOOST_TEST(got.rank == 1U);
  BOOST_TEST(got.index == 2U);
  BOOST_TEST(got.digest.hex() == "9a0f7d07c34f63a53f35eb1d201392f3");
  BOOST_TEST(step_digest({got}).hex() == "4595e98856ebde2b42e7704a32d04337");
  grid_hash grid;
  grid.add_step(3, {got});
  BOOST_TEST(grid.value().hex() == "cc0dfbfee4f5f79f5151d100e0bbc496");
  BOOST_TEST(grid_hash{}.value().hex() ==
             "99aa06d3014798d86001c324468d497f"); // XXH3-128 of nothing
}

BOOST_AUTO_TEST_CASE(every_field_changes_the_digest) {
  const auto base = digest_of(example()).digest;
  const std::vector<std::function<void(micro_batch_tensors &)>> changes = {
      [](auto &t) { t.rank = 0; },
      [](auto &t) { t.index = 0; },
      [](auto &t) { t.padding = 2; },
      [](auto &t) {
        t.env_names = {"mathc", "ode"};
      },
      [](auto &t) {
        set(t.input_ids, std::vector<int>{10, 11, 13, 1});
      },
      [](auto &t) {
        set(t.loss_mask, std::vector<int>{0, 1, 0, 0});
      },
      [](auto &t) {
        set(t.advantages, std::vector<float>{-0.0F, 0.5F, -1, 0});
      },
      [](auto &t) {
        set(t.sequence_lengths, std::vector<int>{1, 3});
      },
      [](auto &t) { t.rl_weights.make_absent(); },
      [](auto &t) {
        set(t.ce_weights, std::vector<float>{0, 0, 0, 0});
      },
      [](auto &t) {
        t.routed_experts.shape = {4, 2, 1};
      },
      [](auto &t) { t.routed_experts.type = dtype::boolean; },
      [](auto &t) {
        set(t.mm_token_type_ids, std::vector<int>{0, 0, 0, 0});
      },
      [](auto &t) {
        t.mm_arrays.resize(1);
        t.mm_count = 1;
        t.mm_arrays[0].shape = {0};
        t.mm_arrays[0].bytes.resize(0);
      },
      [](auto &t) {
        set_kept(t, {0, 0, 0, 0}, {});
      },
      [](auto &t) {
        set_kept(t, {0, 1, 0, 0}, {5});
      },
      [](auto &t) {
        set_kept(t, {0, 1, 0, 0}, {6});
      }};
  std::set<std::string> seen{base.hex()};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    auto t = example();
    changes[i](t);
    BOOST_TEST(seen.insert(digest_of(t).digest.hex()).second, "change " << i);
  }
}

BOOST_AUTO_TEST_CASE(the_step_itself_is_in_the_grid_hash_only) {
  auto t = example();
  t.step = 4;
  BOOST_TEST((digest_of(t) == digest_of(example())));
  grid_hash three, four;
  three.add_step(3, {digest_of(t)});
  four.add_step(4, {digest_of(t)});
  BOOST_TEST((three.value() != four.value()));
}

BOOST_AUTO_TEST_CASE(the_order_in_which_batches_arrive_does_not_matter) {
  micro_batch_digest a{0, 0, {}}, b{0, 1, {}}, c{1, 0, {}};
  a.digest.bytes[0] = 9;
  b.digest.bytes[0] = 5;
  c.digest.bytes[0] = 7;
  BOOST_TEST((step_digest({a, b, c}) == step_digest({c, a, b})));
  grid_hash first, second;
  first.add_step(1, {a, b, c});
  second.add_step(1, {b, c, a});
  BOOST_TEST((first.value() == second.value()));
}

BOOST_AUTO_TEST_SUITE_END()
