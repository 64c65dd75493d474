// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "runtime/json.hpp"
#include "schema/episode_encoder.hpp"

namespace millrace {

/// Reads the fields of an object one after the other and keeps the first error.
class case_fields {
public:
  explicit case_fields(const json::value &object) : object_(object) {}

  template <class T> void get(std::string_view key, T &out) {
    take(object_.get<T>(key), [&out](T &&found) { out = std::move(found); });
  }
  /// null and absent are the same.
  template <class T> void find(std::string_view key, std::optional<T> &out) {
    take(object_.find<T>(key, json::nulls::as_absent),
         [&out](std::optional<T> &&found) { out = std::move(found); });
  }
  status done() const {
    if (problem_)
      return tl::unexpected(*problem_);
    return {};
  }

private:
  template <class T, class F> void take(result<T> found, F &&put) {
    if (found)
      put(std::move(*found));
    else if (!problem_)
      problem_ = std::move(found).error();
  }

  json::value object_;
  std::optional<error> problem_;
};

/// An encoded array: {"shape", "dtype", "data_hex"}. The bytes need not fill the shape: that is for
/// who checks the sample. Errors: bad_value if it is none.
result<array_data> read_array(const json::value &in);

} // namespace millrace
