#include "models/spec/strategy.h"

#include <algorithm>
#include <numeric>

#include "models/base/names.h"

namespace orrery {
namespace {

constexpr Named<Sharding> kShardings[] = {{"none", Sharding::none},
                                          {"zero1", Sharding::zero1},
                                          {"zero2", Sharding::zero2},
                                          {"zero3", Sharding::zero3},
                                          {"fsdp", Sharding::fsdp},
                                          {"fsdp-grad-op", Sharding::fsdp_grad_op},
                                          {"hsdp", Sharding::hsdp},
                                          {"data-parallel", Sharding::data_parallel},
                                          {"parameter-server", Sharding::parameter_server}};

}  // namespace

std::int64_t Strategy::place_of(std::int64_t stage) const {
  if (stage_replicas.empty()) return stage;
  const auto end = stage_replicas.begin() + std::min<std::int64_t>(stage, std::ssize(stage_replicas));
  return std::accumulate(stage_replicas.begin(), end, std::int64_t{0});
}

std::int64_t grid_side(const Strategy& s) {
  const std::int64_t depth = s.tensor_kind == "2.5d" ? s.tensor_depth : 1;
  for (std::int64_t q = 2; q * q <= s.tensor; ++q) {
    if (q * q * (s.tensor_kind == "3d" ? q : depth) == s.tensor) return q;
  }
  return 0;
}

Sharding find_sharding(std::string_view name) { return find_named(kShardings, "sharding", name); }
std::string_view name_of(Sharding s) { return name_in(kShardings, s); }
std::vector<std::string_view> sharding_names() { return names_of(kShardings); }

}  // namespace orrery
