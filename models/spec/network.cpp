#include "models/spec/network.h"

#include <cmath>

#include "models/base/names.h"

namespace orrery {
namespace {

constexpr Named<NetworkKind> kNetworkKinds[] = {{"fat-tree", NetworkKind::fat_tree},
                                                {"rails", NetworkKind::rails},
                                                {"rail-only", NetworkKind::rail_only},
                                                {"dragonfly", NetworkKind::dragonfly},
                                                {"torus", NetworkKind::torus}};
constexpr Named<Routing> kRoutings[] = {
    {"adaptive", Routing::adaptive}, {"ecmp", Routing::ecmp}, {"d-mod-k", Routing::d_mod_k}};

constexpr Named<Placement> kPlacements[] = {
    {"contiguous", Placement::contiguous}, {"scattered", Placement::scattered}, {"random", Placement::random}};

}  // namespace

double held_by_flap(double down_s) { return std::ceil(down_s / kResend_s) * kResend_s; }

NetworkKind find_network_kind(std::string_view name) { return find_named(kNetworkKinds, "kind of network", name); }
Routing find_routing(std::string_view name) { return find_named(kRoutings, "routing", name); }
Placement find_placement(std::string_view name) { return find_named(kPlacements, "placement", name); }
std::string_view name_of(Placement p) { return name_in(kPlacements, p); }
std::string_view name_of(NetworkKind k) { return name_in(kNetworkKinds, k); }
std::string_view name_of(Routing r) { return name_in(kRoutings, r); }

}  // namespace orrery
