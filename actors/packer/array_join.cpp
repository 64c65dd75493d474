// SPDX-License-Identifier: Apache-2.0
#include "actors/packer/array_join.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "schema/image_grid.hpp"
#include "schema/kept_tokens.hpp"
#include "schema/limits.hpp"

namespace millrace {

namespace {

bool has_shape_of(const array_join &join, const array_view &view) {
  return join.type == view.type && join.shape.size() == view.shape.size() &&
         std::equal(join.shape.begin() + 1, join.shape.end(), view.shape.begin() + 1);
}

array_join start_join(const array_view &view) {
  array_join out{.name = view.name, .type = view.type, .shape = {}, .slices = {}};
  out.shape.assign(view.shape.begin(), view.shape.end());
  out.shape.front() = 0;
  return out;
}

status append(array_join &join, const array_view &view, std::uint64_t rows) {
  if (!has_shape_of(join, view))
    return fail(errc::bad_value, "array '{}' has another dtype or trailing shape than the rest",
                view.name);
  if (rows > view.rows())
    return fail(errc::bad_value, "array '{}' has {} rows, {} are to be kept", view.name,
                view.rows(), rows);
  join.shape.front() += rows;
  join.slices.push_back({&view, rows});
  return {};
}

status check_size(const array_join &join) {
  if (!array_bytes(join.shape, join.type, limits::tensor_bytes) ||
      !array_bytes(std::span(join.shape).subspan(1), join.type, limits::array_part_bytes))
    return fail(errc::too_large, "array '{}' of {} rows is over the limits", join.name,
                join.shape.front());
  return {};
}

/// Whether every node of the branch that has tokens has experts; golden rule: all or none.
bool has_experts(const sample_source &source) {
  return std::all_of(source.path->nodes.begin(), source.path->nodes.end(), [&](auto i) {
    const auto &node = source.nodes[i];
    return node.token_ids.empty() || node.routed_experts.has_value();
  });
}

/// Rows of the patches of the first images, and rows of the grid, that a cut sample keeps.
struct kept_rows {
  std::uint64_t grid = 0;
  std::uint64_t patches = 0;
};

/// Adds the patches of at most `images` rows of a grid; subtracts the rows read.
status add_patches(const array_view &grid, std::uint64_t &images, std::uint64_t &patches) {
  const auto rows = read_image_grid(grid);
  if (!rows)
    return tl::unexpected(rows.error());
  for (const auto &row : *rows) {
    if (images == 0)
      break;
    --images;
    std::int64_t product = 0;
    if (std::any_of(row.begin(), row.end(), [](auto x) { return x < 0; }) ||
        __builtin_mul_overflow(row[0], row[1], &product) ||
        __builtin_mul_overflow(product, row[2], &product) ||
        __builtin_add_overflow(patches, static_cast<std::uint64_t>(product), &patches))
      return fail(errc::bad_value, "image_grid_thw holds {} x {} x {}", row[0], row[1], row[2]);
  }
  return {};
}

result<kept_rows> rows_of_kept_images(const sample_source &source) {
  kept_rows out{.grid = source.images};
  std::uint64_t missing = source.images;
  for (auto i : source.path->nodes)
    for (const auto &tensor : source.nodes[i].tensors)
      if (tensor.name == image_grid_name)
        MILLRACE_TRY(add_patches(tensor, missing, out.patches));
  if (missing > 0)
    return fail(errc::bad_value, "image_grid_thw has {} images, {} are to be kept",
                source.images - missing, source.images);
  return out;
}

/// Joins the tensors of one sample to those of the samples before it.
class image_joiner {
public:
  explicit image_joiner(std::vector<array_join> &joins) : joins_(joins) {}

  status add(const sequence_plan &sequence) {
    const auto &source = *sequence.source;
    const bool cut = source.tokens < source.path->tokens && sequence.type_ids;
    kept_rows kept;
    if (cut && source.images > 0) {
      auto found = rows_of_kept_images(source);
      if (!found)
        return tl::unexpected(std::move(found).error());
      kept = *found;
    }
    if (cut && source.images == 0)
      return {}; // no image is left: it counts as text
    ++sequence_;
    const bool first = joins_.empty();
    start_.clear();
    for (const auto &join : joins_)
      start_.push_back(join.shape.front());
    for (auto i : source.path->nodes)
      for (const auto &tensor : source.nodes[i].tensors)
        MILLRACE_TRY(add_tensor(tensor, first, cut ? &kept : nullptr));
    return finish(cut ? &kept : nullptr);
  }

private:
  static std::uint64_t rows_kept(const array_join &join, const kept_rows &kept) {
    return join.name == image_grid_name ? kept.grid : kept.patches;
  }

  status add_tensor(const array_view &tensor, bool first, const kept_rows *kept) {
    if (tensor.shape.empty())
      return fail(errc::bad_value, "array '{}' has no dimensions", tensor.name);
    auto join = std::find_if(joins_.begin(), joins_.end(),
                             [&](const auto &j) { return j.name == tensor.name; });
    if (join == joins_.end()) {
      if (!first)
        return fail(errc::bad_value, "array '{}' is not in the samples before it", tensor.name);
      joins_.push_back(start_join(tensor));
      start_.push_back(0);
      join = joins_.end() - 1;
    }
    auto rows = tensor.rows();
    if (kept != nullptr) {
      const auto so_far =
          join->shape.front() - start_[static_cast<std::size_t>(join - joins_.begin())];
      rows = std::min(rows, rows_kept(*join, *kept) - so_far);
    }
    join->sequences = sequence_;
    return append(*join, tensor, rows);
  }

  status finish(const kept_rows *kept) {
    bool any = false;
    for (const auto &join : joins_)
      any = any || join.sequences == sequence_;
    if (!any) { // a text sample
      --sequence_;
      return {};
    }
    for (std::size_t i = 0; i < joins_.size(); ++i) {
      if (joins_[i].sequences != sequence_)
        return fail(errc::bad_value, "array '{}' of the samples before it is missing",
                    joins_[i].name);
      const auto rows = joins_[i].shape.front() - start_[i];
      if (kept != nullptr && rows != rows_kept(joins_[i], *kept))
        return fail(errc::bad_value, "array '{}' has {} rows, {} are to be kept", joins_[i].name,
                    rows, rows_kept(joins_[i], *kept));
    }
    return {};
  }

  std::vector<array_join> &joins_;
  std::vector<std::uint64_t> start_; ///< rows of each join before this sample
  std::uint64_t sequence_ = 0;       ///< image samples so far
};

array_join int32_join(std::string_view name) {
  return {.name = name, .type = dtype::int32, .shape = {0}, .slices = {}};
}

/// The counts and ids of the tokens that are kept of a node; zeros and none of one without any.
status append_kept_tokens(kept_tokens_join &out, const piece &p) {
  const auto &counts = p.node->kept_counts;
  const auto &ids = p.node->kept_ids;
  MILLRACE_TRY(check_kept_counts({counts, ids}, p.node->token_ids.size()));
  out.counts.shape.front() += p.tokens;
  out.counts.slices.push_back({counts ? &*counts : nullptr, p.tokens});
  if (!counts)
    return {};
  const auto rows = kept_ids_of(*counts, p.tokens);
  out.ids.shape.front() += rows;
  out.ids.slices.push_back({&*ids, rows});
  return {};
}

} // namespace

std::size_t array_join::bytes_of_rows(std::uint64_t rows) const noexcept {
  std::size_t bytes = size_of(type) * static_cast<std::size_t>(rows);
  for (auto dimension : std::span(shape).subspan(1))
    bytes *= static_cast<std::size_t>(dimension);
  return bytes;
}

std::size_t array_join::bytes() const noexcept { return bytes_of_rows(shape.front()); }

frame array_join::join(const std::shared_ptr<memory_meter> &meter) const {
  buffer memory(bytes(), meter);
  auto *out = memory.data();
  for (const auto &part : slices) {
    if (part.from == nullptr) {
      const auto size = bytes_of_rows(part.rows);
      out = std::fill_n(out, size, std::byte{0});
      continue;
    }
    auto left = static_cast<std::size_t>(part.rows) * part.from->row_bytes();
    for (auto bytes : part.from->pieces) {
      const auto size = std::min(left, bytes.size());
      out = std::copy_n(bytes.data(), size, out);
      left -= size;
    }
    MILLRACE_ASSERT(left == 0, "array '{}' is {} bytes short", name, left);
  }
  return std::move(memory).freeze();
}

result<std::optional<array_join>> join_experts(std::span<const sequence_plan> sequences) {
  std::optional<array_join> out;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const bool has = has_experts(*sequences[s].source);
    if (s > 0 && has != out.has_value())
      return fail(errc::bad_value, "sample {}: it has {}routed experts, the samples before have {}",
                  s, has ? "" : "no ", has ? "none" : "some");
    if (!has)
      continue;
    for (const auto &p : sequences[s].pieces) {
      if (p.node->token_ids.empty())
        continue;
      const auto &experts = *p.node->routed_experts;
      if (experts.shape.size() != 3 || experts.rows() != p.node->token_ids.size())
        return fail(errc::bad_value, "sample {}: routed experts are not [{}, layers, top_k]", s,
                    p.node->token_ids.size());
      if (!out)
        out = start_join(experts);
      if (auto added = append(*out, experts, p.tokens); !added)
        return with_context(std::move(added).error(), fmt::format("sample {}", s));
    }
  }
  if (out)
    MILLRACE_TRY(check_size(*out));
  return out;
}

result<std::optional<kept_tokens_join>> join_kept_tokens(std::span<const sequence_plan> sequences) {
  const auto has = [](const sequence_plan &sequence) { return sequence.kept_tokens; };
  if (std::none_of(sequences.begin(), sequences.end(), has))
    return std::nullopt;
  kept_tokens_join out{.counts = int32_join("kept_counts"), .ids = int32_join("kept_ids")};
  for (std::size_t s = 0; s < sequences.size(); ++s)
    for (const auto &p : sequences[s].pieces)
      if (auto added = append_kept_tokens(out, p); !added)
        return with_context(std::move(added).error(), fmt::format("sample {}", s));
  MILLRACE_TRY(check_size(out.counts));
  MILLRACE_TRY(check_size(out.ids));
  return out;
}

result<std::vector<array_join>> join_images(std::span<const sequence_plan> sequences) {
  std::vector<array_join> out;
  image_joiner joiner(out);
  for (std::size_t s = 0; s < sequences.size(); ++s)
    if (auto added = joiner.add(sequences[s]); !added)
      return with_context(std::move(added).error(), fmt::format("sample {}", s));
  for (const auto &join : out)
    MILLRACE_TRY(check_size(join));
  std::sort(out.begin(), out.end(), [](const auto &a, const auto &b) { return a.name < b.name; });
  return out;
}

} // namespace millrace
