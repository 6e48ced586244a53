#include "models/spec/network.h"

#include "models/base/names.h"

namespace orrery {
namespace {

constexpr Named<NetworkKind> kNetworkKinds[] = {{"fat-tree", NetworkKind::fat_tree}, {"rails", NetworkKind::rails}};
constexpr Named<Routing> kRoutings[] = {
    {"adaptive", Routing::adaptive}, {"ecmp", Routing::ecmp}, {"d-mod-k", Routing::d_mod_k}};

}  // namespace

NetworkKind find_network_kind(std::string_view name) { return find_named(kNetworkKinds, "kind of network", name); }
Routing find_routing(std::string_view name) { return find_named(kRoutings, "routing", name); }
std::string_view name_of(NetworkKind k) { return name_in(kNetworkKinds, k); }
std::string_view name_of(Routing r) { return name_in(kRoutings, r); }

}  // namespace orrery
