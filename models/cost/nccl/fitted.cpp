#include "models/cost/nccl/fitted.h"

#include <nlohmann/json.hpp>

#include "models/base/data.h"

namespace orrery {

namespace {

std::array<NcclOnOneNode, kNodeKinds> one_node(const nlohmann::json& kinds) {
  static constexpr std::array<const char*, kNodeKinds> kNames = {"sm80", "sm90", "sm100", "pcie"};
  std::array<NcclOnOneNode, kNodeKinds> all;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto of = [&](const char* key) { return kinds.at(kNames[i]).at(key).get<double>(); };
    all[i] = {.start_us = of("start_us"),
              .hop_us = of("hop_us"),
              .ll_part = of("ll_part"),
              .ring_part = of("ring_part"),
              .exchange_GBps = of("exchange_GBps")};
  }
  return all;
}

}  // namespace

const FittedCollectives& fitted_collectives() {
  static const FittedCollectives fitted = [] {
    const nlohmann::json file = nlohmann::json::parse(data_file("fitted.json"));
    const auto of = [&](const char* key) { return file.at("collectives").at("numbers").at(key).get<double>(); };
    return FittedCollectives{.start_us = of("start_us"),
                             .one_node = one_node(file.at("collectives").at("one_node")),
                             .ring_end = of("ring_end"),
                             .flags_us = of("flags_us"),
                             .wide_block = of("wide_block"),
                             .next_peer = of("next_peer"),
                             .ll_send_part = of("ll_send_part"),
                             .nvls_link_part = of("nvls_link_part"),
                             .nvls_channel_GBps = of("nvls_channel_GBps"),
                             .nvlink_to_all_part = of("nvlink_to_all_part"),
                             .nic_part = of("nic_part"),
                             .nic_to_all_part = of("nic_to_all_part"),
                             .most_to_many_peers_GBps = of("most_to_many_peers_GBps"),
                             .links_to_all_part = of("links_to_all_part"),
                             .rccl_nic_part = of("rccl_nic_part")};
  }();
  return fitted;
}

}  // namespace orrery
