// An all-to-all in two stages: first to the other nodes, everything for one of them in one message to the member in
// this one's place there; then inside the node, each its own.
#include <algorithm>
#include <cstring>
#include <map>

#include "exec/combine.h"
#include "exec/mpi_transport_parts.h"

namespace orrery::mpi {
namespace {

using Member = std::size_t;

// Elements of every member on a node, for the one that passes them on.
struct Relay {
  std::vector<std::int64_t> counts;
  std::vector<std::byte> data;

  std::int64_t before(std::size_t place) const { return before_piece(counts, static_cast<int>(place)); }
};

class TwoStages final : public Pending {
 public:
  TwoStages(Channel& channel, const CollectiveCall& call)
      : channel_(channel), call_(call), width_(width_of(call.element)), me_(static_cast<Member>(channel.rank)) {
    for (int& tag : tags_) tag = next_tag(channel);
    const auto members = static_cast<std::size_t>(channel.size);
    if (call_.counts.size() == 1 && members > 1) call_.counts.assign(members, call_.counts[0]);
    if (call_.received.empty()) call_.received = call_.counts;
    for (Member m = 0; m < members; ++m) nodes_[call.nodes[m]].push_back(m);
    tell_counts();
  }

  bool done() override {
    while (stage_ < 3) {
      if (!all_done(requests_)) return false;
      ++stage_;
      if (stage_ == 1) cross();
      if (stage_ == 2) hand_out();
      if (stage_ == 3) collect();
    }
    return true;
  }

 private:
  const std::vector<Member>& on(std::int64_t node) const { return nodes_.at(node); }
  std::int64_t home() const { return call_.nodes[me_]; }
  std::size_t place(Member m) const {
    const auto& all = on(call_.nodes[m]);
    return static_cast<std::size_t>(std::find(all.begin(), all.end(), m) - all.begin());
  }
  // Who on a node passes on what a member of another one sends there.
  Member relay(Member source, std::int64_t node) const {
    return call_.nodes[source] == node ? source : on(node)[place(source) % on(node).size()];
  }
  // Members of other nodes whose tokens this one passes on.
  std::vector<Member> sources() const {
    std::vector<Member> list;
    for (const auto& [node, members] : nodes_) {
      for (const Member m : members) {
        if (node != home() && relay(m, home()) == me_) list.push_back(m);
      }
    }
    return list;
  }
  const std::byte* piece_for(Member m) const {
    return static_cast<const std::byte*>(call_.in) + before_piece(call_.counts, static_cast<int>(m)) * width_;
  }
  Bytes bytes(std::int64_t elements) const { return elements * width_; }

  // What this member sends to each node, and how much of it is for whom there.
  void tell_counts() {
    for (const auto& [node, members] : nodes_) {
      Relay& out = outgoing_[node];
      for (const Member m : members) {
        out.counts.push_back(call_.counts[m]);
        const std::byte* from = piece_for(m);
        out.data.insert(out.data.end(), from, from + bytes(call_.counts[m]));
      }
      if (node != home()) exchange(out.counts, relay(me_, node), true);
    }
    for (const Member m : sources()) {
      incoming_[m].counts.resize(on(home()).size());
      exchange(incoming_[m].counts, m, false);
    }
  }
  void exchange(std::vector<std::int64_t>& counts, Member peer, bool sends) {
    auto* data = reinterpret_cast<std::byte*>(counts.data());
    const auto size = static_cast<Bytes>(counts.size() * sizeof(std::int64_t));
    sends ? send(channel_, static_cast<int>(peer), tags_[0], data, size, requests_)
          : receive(channel_, static_cast<int>(peer), tags_[0], data, size, requests_);
  }

  void cross() {
    for (auto& [node, out] : outgoing_) {
      if (node == home()) continue;
      send(channel_, static_cast<int>(relay(me_, node)), tags_[1], out.data.data(), static_cast<Bytes>(out.data.size()),
           requests_);
    }
    for (auto& [m, in] : incoming_) {
      in.data.resize(static_cast<std::size_t>(bytes(in.before(in.counts.size()))));
      receive(channel_, static_cast<int>(m), tags_[1], in.data.data(), static_cast<Bytes>(in.data.size()), requests_);
    }
  }

  // To every neighbour what this member has for it: its own first, then what came, by source.
  void hand_out() {
    incoming_[me_] = std::move(outgoing_.at(home()));
    for (std::size_t i = 0; i < on(home()).size(); ++i) {
      std::vector<std::byte>& gathered = handed_[on(home())[i]];
      for (const auto& [m, in] : incoming_) {
        const std::byte* from = in.data.data() + bytes(in.before(i));
        gathered.insert(gathered.end(), from, from + bytes(in.counts[i]));
      }
      const Member neighbour = on(home())[i];
      if (neighbour == me_) continue;
      send(channel_, static_cast<int>(neighbour), tags_[2], gathered.data(), static_cast<Bytes>(gathered.size()),
           requests_);
    }
    for (const Member neighbour : on(home())) {
      if (neighbour == me_) continue;
      std::vector<std::byte>& landing = landed_[neighbour];
      landing.resize(static_cast<std::size_t>(bytes(through(neighbour))));
      receive(channel_, static_cast<int>(neighbour), tags_[2], landing.data(), static_cast<Bytes>(landing.size()),
              requests_);
    }
  }
  // Elements for this member that a neighbour hands it.
  std::int64_t through(Member neighbour) const {
    std::int64_t sum = 0;
    for (Member m = 0; m < call_.received.size(); ++m) sum += relay(m, home()) == neighbour ? call_.received[m] : 0;
    return sum;
  }

  // By source, as an all-to-all leaves it.
  void collect() {
    landed_[me_] = std::move(handed_.at(me_));
    std::map<Member, Bytes> taken;
    auto* out = static_cast<std::byte*>(call_.out);
    for (Member m = 0; m < call_.received.size(); ++m) {
      const Member from = relay(m, home());
      const Bytes n = bytes(call_.received[m]);
      if (n > 0) std::memcpy(out, landed_.at(from).data() + taken[from], static_cast<std::size_t>(n));
      taken[from] += n;
      out += n;
    }
  }

  Channel& channel_;
  CollectiveCall call_;
  std::int64_t width_;
  Member me_;
  int tags_[3] = {};
  int stage_ = 0;
  std::map<std::int64_t, std::vector<Member>> nodes_;
  std::map<std::int64_t, Relay> outgoing_;           // by node
  std::map<Member, Relay> incoming_;                 // by source
  std::map<Member, std::vector<std::byte>> handed_;  // to each neighbour
  std::map<Member, std::vector<std::byte>> landed_;  // from each neighbour
  std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<Pending> start_two_stages(Channel& channel, const CollectiveCall& call) {
  return std::make_unique<TwoStages>(channel, call);
}

}  // namespace orrery::mpi
