#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace orrery {

// An array of constant values, in memory or in a mapped file. Copies share the values, which live as long as the last
// copy.
template <class T>
class MappedColumn {
 public:
  MappedColumn() = default;
  MappedColumn(std::vector<T> values) {  // NOLINT(google-explicit-constructor): converts a vector on purpose
    auto owner = std::make_shared<const std::vector<T>>(std::move(values));
    values_ = *owner;
    owner_ = std::move(owner);
  }
  // owner: the object that keeps the values alive.
  MappedColumn(std::shared_ptr<const void> owner, std::span<const T> values)
      : owner_(std::move(owner)), values_(values) {}

  const T& operator[](std::size_t i) const { return values_[i]; }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  const T& back() const { return values_.back(); }
  const T* data() const { return values_.data(); }
  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const T> values_;
};

}  // namespace orrery
