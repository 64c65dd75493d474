// SPDX-License-Identifier: Apache-2.0
#include "actors/trainer/micro_batch_digest.hpp"

#include <algorithm>

#include "actors/trainer/tensor_items.hpp"

namespace millrace {

namespace {

void add_shape(digest_writer &writer, std::span<const std::uint64_t> shape) {
  writer.add_u32(static_cast<std::uint32_t>(shape.size()));
  std::uint64_t count = 1;
  for (auto dimension : shape) {
    writer.add_u64(dimension);
    count *= dimension;
  }
  writer.add_u64(count);
}

void add(digest_writer &writer, const tensor_item &item) {
  writer.add_string(item.name);
  if (!item.present) {
    writer.add_string("absent");
    return;
  }
  writer.add_string(name_of(item.type));
  add_shape(writer, item.shape);
  writer.add(item.bytes);
}

void add_env_names(digest_writer &writer, std::span<const std::string> names) {
  const std::uint64_t count = names.size();
  writer.add_string("env_names");
  writer.add_string("string");
  add_shape(writer, std::span(&count, 1));
  for (const auto &name : names)
    writer.add_string(name);
}

void add_padding(digest_writer &writer, std::int64_t padding) {
  writer.add_string("padding");
  writer.add_string("int64");
  add_shape(writer, {});
  writer.add_u64(static_cast<std::uint64_t>(padding));
}

} // namespace

micro_batch_digest digest_of(const micro_batch_tensors &tensors) {
  digest_writer writer;
  writer.add_u32(tensors.rank);
  writer.add_u32(tensors.index);
  const auto items = items_of(tensors);
  for (const auto &item : items.always)
    add(writer, item);
  add_env_names(writer, tensors.env_names);
  add_padding(writer, tensors.padding);
  for (const auto &item : items.nullable)
    add(writer, item);
  return {tensors.rank, tensors.index, writer.finish()};
}

digest128 step_digest(std::vector<micro_batch_digest> batches) {
  std::sort(batches.begin(), batches.end());
  digest_writer writer;
  for (const auto &batch : batches) {
    writer.add_u32(batch.rank);
    writer.add_u32(batch.index);
    writer.add_digest(batch.digest);
  }
  return writer.finish();
}

void grid_hash::add_step(std::uint64_t step, std::vector<micro_batch_digest> batches) {
  MILLRACE_ASSERT(!last_ || *last_ < step, "step {} after step {}", step, *last_);
  last_ = step;
  std::sort(batches.begin(), batches.end());
  for (const auto &batch : batches) {
    writer_.add_u64(step);
    writer_.add_u32(batch.rank);
    writer_.add_u32(batch.index);
    writer_.add_digest(batch.digest);
  }
}

} // namespace millrace
