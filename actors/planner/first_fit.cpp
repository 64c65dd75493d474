// SPDX-License-Identifier: Apache-2.0
#include "actors/planner/first_fit.hpp"

#include <algorithm>

namespace millrace {

namespace {

/// Room left in each place, with a search for the first that has enough: a binary tree of maxima
/// over a power of two of places. Node 1 is the root, the children of node i are 2i and 2i + 1.
class room_tree {
public:
  std::size_t size() const { return size_; }

  void push_back(std::uint32_t room) {
    if (size_ == leaves_)
      grow();
    set(size_++, room);
  }

  void set(std::size_t place, std::uint32_t room) {
    auto node = leaves_ + place;
    most_[node] = room;
    while ((node /= 2) != 0)
      most_[node] = std::max(most_[2 * node], most_[2 * node + 1]);
  }

  /// The first place at or after `from` with at least `room`, which is not 0; size() if none has.
  std::size_t find(std::size_t from, std::uint32_t room) const {
    if (from >= size_)
      return size_;
    auto node = leaves_ + from;
    while (most_[node] < room) {
      while (node % 2 == 1) // up, past right children; the root is one
        if ((node /= 2) == 0)
          return size_;
      ++node;
    }
    while (node < leaves_) {
      node *= 2;
      if (most_[node] < room)
        ++node;
    }
    return node - leaves_;
  }

private:
  void grow() {
    const auto old =
        std::vector<std::uint32_t>(most_.end() - static_cast<std::ptrdiff_t>(leaves_), most_.end());
    leaves_ *= 2;
    most_.assign(2 * leaves_, 0);
    std::copy(old.begin(), old.end(), most_.begin() + static_cast<std::ptrdiff_t>(leaves_));
    for (auto node = leaves_; --node != 0;)
      most_[node] = std::max(most_[2 * node], most_[2 * node + 1]);
  }

  std::size_t size_ = 0;
  std::size_t leaves_ = 1;
  std::vector<std::uint32_t> most_ = std::vector<std::uint32_t>(2, 0);
};

/// Bins whose first sample has experts of one signature, or none.
struct expert_class {
  room_tree room;
  std::vector<std::size_t> bins;
};

class fitter {
public:
  fitter(std::span<const sample_shape> samples, std::uint32_t seq_len)
      : samples_(samples), seq_len_(seq_len) {}

  void put(const planned_piece &p) {
    const auto &shape = samples_[p.sample];
    auto &group = classes_[shape.experts];
    const auto *tensors = p.images == 0 ? nullptr : &shape.images->tensors;
    auto place = group.room.find(0, p.tokens);
    while (place < group.room.size() && !images_fit(group.bins[place], tensors))
      place = group.room.find(place + 1, p.tokens);
    if (place == group.room.size()) {
      group.room.push_back(seq_len_);
      group.bins.push_back(bins.size());
      bins.emplace_back();
      tensors_.push_back(nullptr);
    }
    const auto index = group.bins[place];
    auto &bin = bins[index];
    bin.pieces.push_back(p);
    bin.tokens += p.tokens;
    bin.images = bin.images || tensors != nullptr;
    if (tensors != nullptr)
      tensors_[index] = tensors;
    group.room.set(place, seq_len_ - bin.tokens);
  }

  std::vector<open_bin> bins;

private:
  using signatures = std::vector<array_signature>;

  bool images_fit(std::size_t bin, const signatures *tensors) const {
    const auto *there = tensors_[bin];
    return there == nullptr || tensors == nullptr || *there == *tensors;
  }

  std::span<const sample_shape> samples_;
  std::uint32_t seq_len_;
  std::map<std::optional<array_signature>, expert_class> classes_;
  std::vector<const signatures *> tensors_; ///< of each bin; null for one without images
};

} // namespace

std::vector<open_bin> first_fit(std::span<const sample_shape> samples,
                                std::span<const planned_piece> pieces, std::uint32_t seq_len) {
  fitter work(samples, seq_len);
  for (const auto &p : pieces)
    work.put(p);
  return std::move(work.bins);
}

} // namespace millrace
