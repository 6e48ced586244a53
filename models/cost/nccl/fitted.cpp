#include "models/cost/nccl/fitted.h"

#include <nlohmann/json.hpp>

#include "models/base/data.h"

namespace orrery {

const FittedCollectives& fitted_collectives() {
  static const FittedCollectives fitted = [] {
    const nlohmann::json file = nlohmann::json::parse(data_file("fitted.json"));
    const auto of = [&](const char* key) { return file.at("collectives").at("numbers").at(key).get<double>(); };
    return FittedCollectives{.start_us = of("start_us"),
                             .ring_part_sm80 = of("ring_part_sm80"),
                             .ring_part_sm90 = of("ring_part_sm90"),
                             .ring_part_sm100 = of("ring_part_sm100"),
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
