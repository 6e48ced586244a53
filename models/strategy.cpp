#include "models/strategy.h"

#include "models/names.h"

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

Sharding find_sharding(std::string_view name) { return find_named(kShardings, "sharding", name); }
std::string_view name_of(Sharding s) { return name_in(kShardings, s); }
std::vector<std::string_view> sharding_names() { return names_of(kShardings); }

}  // namespace orrery
