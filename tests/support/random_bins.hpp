// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "actors/packer/gather.hpp"

namespace millrace::test {

/// A raw array with its own bytes.
struct made_array {
  std::string name;
  dtype type = dtype::uint8;
  std::vector<std::uint64_t> shape;
  std::vector<std::byte> bytes;

  /// In one or two pieces of whole rows. Precondition: it stays where it is.
  array_view view(std::size_t rows_in_first_piece) const;
};

/// A node with its own values.
struct made_node {
  std::int32_t parent = -1;
  bool sampled = false;
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> mask;
  std::vector<float> logprobs;
  std::optional<std::vector<float>> advantages, ref_logprobs, rl, ce, ref_kl;
  std::optional<std::vector<std::uint8_t>> types;
  std::optional<made_array> experts;
  std::deque<made_array> tensors;
  std::optional<made_array> kept_counts, kept_ids;

  node_view view() const;
};

/// A trace and its views; not copied, since views point into it.
struct made_trace {
  std::deque<made_node> nodes;
  std::vector<node_view> views;
  trace_graph graph;

  made_trace() = default;
  made_trace(const made_trace &) = delete;
  made_trace &operator=(const made_trace &) = delete;
  /// Makes views and graph once all nodes are there.
  void finish();
};

/// A bin and what its samples point to.
struct made_bin {
  bin plan;
  std::deque<made_trace> traces;
};

/// Random bins: forks, empty nodes, every rule, cuts, dummies, padding, experts, images,
/// kept tokens.
class bin_maker {
public:
  explicit bin_maker(std::uint64_t seed) : random_(seed) {}

  void fill(made_bin &out);

  /// Uniform in [low, high].
  std::size_t pick(std::size_t low, std::size_t high);
  bool chance(double probability);

private:
  struct features {
    bool experts = false;
    dtype expert_type = dtype::uint8;
    bool images = false;
    bool kept_tokens = false;
    bool optional_streams = false;
  };

  float value();
  std::vector<float> values(std::size_t count, double zeros);
  made_node node(std::size_t index, const features &has);
  void add_images(made_node &node);
  void add_kept_tokens(made_node &node);
  void add_trace(made_bin &out, const features &has);
  sample_source sample(const made_trace &trace, const branch &path);
  wire::StreamSpec spec();

  std::mt19937_64 random_;
};

} // namespace millrace::test
