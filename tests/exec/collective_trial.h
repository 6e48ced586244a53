#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "exec/transport/combine.h"
#include "exec/transport/transport.h"
#include "kernels/common/float16.h"
#include "models/plan/plan.h"

// Collectives to try on any number of ranks. Every rank computes the inputs of all ranks of its group, and from them
// the result that it must get.
namespace orrery {

inline constexpr std::array kLanesUsed = {LaneKind::tensor, LaneKind::data_reduce, LaneKind::data_gather};
inline constexpr std::array kGroupsUsed = {Dimension::world, Dimension::tensor, Dimension::data, Dimension::context};

template <class Group>
GroupTable grouped(int ranks, const Group& group_of) {
  GroupTable table;
  int groups = 0;
  for (int r = 0; r < ranks; ++r) {
    table.member_of.push_back(group_of(r));
    groups = std::max(groups, table.member_of.back() + 1);
  }
  table.groups = GroupList(table.member_of, static_cast<std::size_t>(groups));
  return table;
}

// A plan with groups of neighbours, with strides, of all ranks, and of one rank each; the pipeline goes down the ranks.
inline Plan plan_of(int ranks) {
  Plan plan;
  plan.ranks = ranks;
  plan.dimensions.resize(kDimensions, grouped(ranks, [](int r) { return r; }));
  const auto at = [&](Dimension d) -> GroupTable& { return plan.dimensions[static_cast<std::size_t>(d)]; };
  at(Dimension::tensor) = grouped(ranks, [](int r) { return r / 2; });
  at(Dimension::data) = grouped(ranks, [](int r) { return r % 2; });
  at(Dimension::world) = grouped(ranks, [](int) { return 0; });
  at(Dimension::pipeline) = at(Dimension::world);
  std::reverse(at(Dimension::pipeline).groups[0].begin(), at(Dimension::pipeline).groups[0].end());
  for (const LaneKind lane : kLanesUsed) {
    for (const Dimension group : kGroupsUsed) plan.ops.push_back({.work = Collective{.group = group}, .lane = lane});
  }
  plan.ops.push_back({.work = Collective{.group = Dimension::pipeline}, .lane = LaneKind::embedding});
  for (const LaneKind lane :
       {LaneKind::send_next, LaneKind::receive_previous, LaneKind::send_previous, LaneKind::receive_next}) {
    plan.ops.push_back({.work = Transfer{}, .lane = lane});
  }
  return plan;
}

inline std::vector<std::int32_t> members(const Plan& plan, Dimension d, int rank) {
  const GroupTable& table = plan.dimensions[static_cast<std::size_t>(d)];
  const auto group = table.groups[static_cast<std::size_t>(table.member_of[static_cast<std::size_t>(rank)])];
  return {group.begin(), group.end()};
}

// Element i of a rank's input: a small integer of either sign, whose sums are exact in bf16 in every order. It depends
// only on the arguments.
inline float number(std::uint64_t seed, std::int64_t rank, std::int64_t i) {
  auto x = seed * 0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(rank * 1000003 + i + 1) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 31)) * 0x94D049BB133111EBULL;
  return static_cast<float>((x >> 40) % 31) - 15;
}

using Floats = std::vector<float>;

inline Floats numbers(std::uint64_t seed, int rank, std::int64_t count) {
  Floats values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(number(seed, rank, i));
  return values;
}

inline std::vector<std::byte> stored(Element element, const Floats& values) {
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(width_of(element)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const kernels::Bf16 half = kernels::to_bf16(values[i]);
    const auto byte = static_cast<std::byte>(static_cast<int>(values[i]) + 15);
    if (element == Element::f32) std::memcpy(&bytes[4 * i], &values[i], 4);
    if (element == Element::bf16) std::memcpy(&bytes[2 * i], &half, 2);
    if (element == Element::bytes) bytes[i] = byte;
  }
  return bytes;
}

inline std::int64_t sum_of(const std::vector<std::int64_t>& counts, std::size_t end) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < end; ++i) sum += counts[i];
  return sum;
}

struct CollectiveCase {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::string algorithm = "library";
  Element element = Element::f32;
  Reduction reduction = Reduction::sum;
  Dimension group = Dimension::world;
  LaneKind lane = LaneKind::tensor;
  std::int64_t size = 0;
  bool add = false;
  bool overlap = false;  // gather: in lies in out; scatter: out lies in in
  std::uint64_t seed = 0;
};

inline void PrintTo(const CollectiveCase& c, std::ostream* out) {
  *out << c.algorithm << " " << name_of(c.kind) << " element " << static_cast<int>(c.element) << " reduction "
       << static_cast<int>(c.reduction) << " group " << name_of(c.group) << " size " << c.size << " add " << c.add
       << " overlap " << c.overlap << " seed " << c.seed;
}

inline bool has_pieces(CollectiveKind kind) {
  return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
}

inline bool in_place(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
}

inline bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::reduce;
}

inline std::vector<std::string> algorithms_of(CollectiveKind kind) {
  std::vector<std::string> names = {"library"};
  for (const CollectiveAlgorithm& a : collective_algorithms()) {
    if (a.kind == kind) names.emplace_back(a.name);
  }
  return names;
}

// Every algorithm of every kind on every group, with each element, overlap and reduction that it allows; the sizes take
// turns.
inline std::vector<CollectiveCase> all_cases() {
  constexpr std::array<std::int64_t, 6> kSizes = {0, 1, 3, 17, 64, 3000};
  std::vector<CollectiveCase> cases;
  for (int k = 0; k < kCollectiveKinds; ++k) {
    const auto kind = static_cast<CollectiveKind>(k);
    for (const std::string& algorithm : algorithms_of(kind)) {
      for (const Dimension group : kGroupsUsed) {
        for (const Element element : {Element::f32, Element::bf16, Element::bytes}) {
          if (element == Element::bytes && reduces(kind)) continue;
          for (int variant = 0; variant < 8; ++variant) {
            const bool add = (variant & 1) != 0, overlap = (variant & 2) != 0, maximum = (variant & 4) != 0;
            if (add &&
                (in_place(kind) || element == Element::bytes || (overlap && kind == CollectiveKind::all_gather))) {
              continue;
            }
            if ((overlap && !has_pieces(kind)) || (maximum && !reduces(kind))) continue;
            const auto i = cases.size();
            cases.push_back({kind, algorithm, element, maximum ? Reduction::maximum : Reduction::sum, group,
                             kLanesUsed[i % kLanesUsed.size()], kSizes[i % 7 % kSizes.size()], add, overlap, i});
          }
        }
      }
    }
  }
  return cases;
}

// One collective of a case: its memory, and what must be in it in the end.
class Trial {
 public:
  Trial(const Plan& plan, int rank, const CollectiveCase& c) : case_(c), members_(members(plan, c.group, rank)) {
    me_ = static_cast<std::size_t>(std::find(members_.begin(), members_.end(), rank) - members_.begin());
    const bool rooted = c.kind == CollectiveKind::broadcast || c.kind == CollectiveKind::reduce;
    root_ = rooted ? c.seed / 2 % members_.size() : 0;
    apart_ = rooted && c.seed % 2 == 1;
    if (has_pieces(c.kind)) {  // uneven pieces, some empty
      for (std::size_t i = 0; i < members_.size(); ++i) {
        counts_.push_back(c.size == 0 ? 0 : (c.size + 3 * static_cast<std::int64_t>(i)) % (c.size + 2));
      }
    } else {
      counts_ = {c.size};
    }
    fill();
  }

  CollectiveCall call() {
    CollectiveCall call{case_.kind, case_.reduction, case_.element, case_.group, case_.algorithm};
    call.in = in_.data();
    call.out = in_place(case_.kind) && !apart_ ? in_.data() : out_.data();
    call.root = static_cast<int>(root_);
    if (case_.overlap && case_.kind == CollectiveKind::all_gather) call.in = out_.data() + own_place();
    if (case_.overlap && case_.kind == CollectiveKind::reduce_scatter) call.out = in_.data() + own_place();
    call.counts = counts_;
    call.add = case_.add;
    result_ = static_cast<const std::byte*>(call.out);
    return call;
  }

  // The bytes that a call's addresses lie in.
  std::array<std::vector<std::byte>*, 2> memory() { return {&in_, &out_}; }

  void start(Transport& transport) { pending_ = transport.start(case_.lane, call()); }

  bool done() { return pending_->done(); }

  // The bytes of the result that this rank is promised; none for a rank of a reduce that is not its root.
  std::vector<std::byte> expected() const {
    if (case_.kind == CollectiveKind::reduce && me_ != root_) return {};
    return stored(case_.element, with_before(moved()));
  }
  const std::byte* result() const { return result_; }

  friend std::ostream& operator<<(std::ostream& out, const Trial& trial) {
    return out << testing::PrintToString(trial.case_) << " of rank " << trial.me_;
  }

  void expect() const {
    const std::vector<std::byte> bytes = expected();
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), result_)) << *this;
    if (!in_place(case_.kind) && !case_.overlap) {
      EXPECT_EQ(in_, stored(case_.element, input(me_))) << "input changed: " << testing::PrintToString(case_);
    }
  }

 private:
  Floats input(std::size_t member) const {
    std::int64_t n = case_.size;
    if (case_.kind == CollectiveKind::all_gather) n = counts_[member];
    if (case_.kind == CollectiveKind::reduce_scatter) n = sum_of(counts_, counts_.size());
    if (case_.kind == CollectiveKind::all_to_all) n *= static_cast<std::int64_t>(members_.size());
    return numbers(case_.seed, members_[member], n);
  }

  Floats reduced() const {
    Floats all = input(0);
    for (std::size_t m = 1; m < members_.size(); ++m) {
      const Floats more = input(m);
      for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = case_.reduction == Reduction::sum ? all[i] + more[i] : std::max(all[i], more[i]);
      }
    }
    return all;
  }

  // The expected result before it is added to the existing values.
  Floats moved() const {
    Floats all;
    switch (case_.kind) {
      case CollectiveKind::all_reduce:
      case CollectiveKind::reduce:
        return reduced();
      case CollectiveKind::broadcast:
        return input(root_);
      case CollectiveKind::shift:
        return input((me_ + members_.size() - 1) % members_.size());
      case CollectiveKind::reduce_scatter:
        all = reduced();
        return {all.begin() + sum_of(counts_, me_), all.begin() + sum_of(counts_, me_ + 1)};
      case CollectiveKind::all_gather:
      case CollectiveKind::all_to_all:
      case CollectiveKind::gather:
      case CollectiveKind::scatter:
      case CollectiveKind::push:
      case CollectiveKind::pull:
        break;
    }
    for (std::size_t m = 0; m < members_.size(); ++m) {
      const Floats from = input(m);
      const bool exchange = case_.kind == CollectiveKind::all_to_all;
      const auto begin = from.begin() + (exchange ? case_.size * static_cast<std::int64_t>(me_) : 0);
      all.insert(all.end(), begin, exchange ? begin + case_.size : from.end());
    }
    return all;
  }

  Floats with_before(Floats all) const {
    if (!case_.add) return all;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += before_[i];
    return all;
  }

  void fill() {
    in_ = stored(case_.element, input(me_));
    if (apart_) out_.resize(in_.size());
    if (in_place(case_.kind)) return;
    before_ = numbers(case_.seed + 7, members_[me_], static_cast<std::int64_t>(moved().size()));
    // the result's memory holds a part of the input
    if (case_.overlap && case_.kind == CollectiveKind::reduce_scatter) {
      const Floats whole = input(me_);
      before_ = {whole.begin() + sum_of(counts_, me_), whole.begin() + sum_of(counts_, me_ + 1)};
    }
    out_ = stored(case_.element, before_);
    if (case_.overlap && case_.kind == CollectiveKind::all_gather) {
      std::copy(in_.begin(), in_.end(), out_.begin() + own_place());
    }
  }

  std::int64_t own_place() const { return sum_of(counts_, me_) * width_of(case_.element); }

  CollectiveCase case_;
  std::vector<std::int32_t> members_;
  std::size_t me_ = 0, root_ = 0;
  bool apart_ = false;  // whether the result of a broadcast or reduce lies apart from the input
  std::vector<std::int64_t> counts_;
  std::vector<std::byte> in_, out_;
  Floats before_;
  const std::byte* result_ = nullptr;
  std::unique_ptr<Pending> pending_;
};

}  // namespace orrery
