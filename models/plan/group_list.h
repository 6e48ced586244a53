#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace orrery {

// A list of process groups, each a list of ranks. All ranks lie in one array, because a large cluster has very many
// short groups.
class GroupList {
 public:
  using Group = std::span<const std::int32_t>;

  class Iterator {
   public:
    Iterator(const GroupList& list, std::size_t i) : list_(&list), i_(i) {}
    Group operator*() const { return (*list_)[i_]; }
    Iterator& operator++() {
      ++i_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return i_ == other.i_; }

   private:
    const GroupList* list_;
    std::size_t i_;
  };

  GroupList() = default;
  // Builds `count` groups: the ranks r with member_of[r] == i make group i, in rank order.
  GroupList(std::span<const std::int32_t> member_of, std::size_t count) : begins_(count + 1), ranks_(member_of.size()) {
    for (const std::int32_t group : member_of) ++begins_[static_cast<std::size_t>(group) + 1];
    for (std::size_t i = 0; i < count; ++i) begins_[i + 1] += begins_[i];
    std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
    for (std::size_t r = 0; r < member_of.size(); ++r)
      ranks_[next[static_cast<std::size_t>(member_of[r])]++] = static_cast<std::int32_t>(r);
  }

  std::size_t size() const { return begins_.size() - 1; }
  bool empty() const { return size() == 0; }
  Group operator[](std::size_t i) const { return {ranks_.data() + begins_[i], ranks_.data() + begins_[i + 1]}; }
  std::span<std::int32_t> operator[](std::size_t i) {
    return {ranks_.data() + begins_[i], ranks_.data() + begins_[i + 1]};
  }
  Group front() const { return (*this)[0]; }
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

  void add_list() { begins_.push_back(ranks_.size()); }
  void add_to_last(std::int32_t rank) {
    ranks_.push_back(rank);
    ++begins_.back();
  }

 private:
  // for each group, the index in ranks_ of its first rank; a last, additional entry is the number of ranks in ranks_
  std::vector<std::size_t> begins_ = {0};
  std::vector<std::int32_t> ranks_;
};

// All process groups of one dimension of parallelism (tensor, data, ...). groups[i] lists the global ranks of group i;
// member_of[rank] is the index of the rank's group.
struct GroupTable {
  GroupList groups;
  std::vector<std::int32_t> member_of;
};

}  // namespace orrery
