// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include "runtime/device/device.hpp"

namespace millrace::test {

template <class T> T must(result<T> got) {
  BOOST_REQUIRE_MESSAGE(got.has_value(), (got ? std::string() : got.error().message));
  return *std::move(got);
}

inline void check_ok(const status &done) {
  BOOST_TEST(done.has_value(), (done ? std::string() : done.error().message));
}

// What a conformance suite for devices runs on.
struct on_host {
  static constexpr std::string_view allocator = "operator new";
  static std::unique_ptr<device> make() { return must(make_device("host")); }
};
struct on_cuda {
  static constexpr std::string_view allocator = "cudaMalloc";
  static std::unique_ptr<device> make() { return must(make_device("cuda")); }
};
using devices_under_test = boost::mpl::list<on_host, on_cuda>;

/// A precondition of cases: skips those whose name has `on_cuda` in it where there is no CUDA
/// device, and says why. The CTests of label gpu run those cases only.
inline boost::test_tools::assertion_result device_is_here(boost::unit_test::test_unit_id id) {
  boost::test_tools::assertion_result answer(true);
  const std::string name = boost::unit_test::framework::get<boost::unit_test::test_case>(id).p_name;
  if (name.find("on_cuda") == std::string::npos)
    return answer;
  if (const auto made = make_device("cuda"); !made) {
    answer = false;
    answer.message() << made.error().message;
  }
  return answer;
}

} // namespace millrace::test
