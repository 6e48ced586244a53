// This file has a hierarchical all-to-all. First data go between nodes: all data for one node go in one message to the
// member with the sender's position on that node. Then they go inside that node, from this member to each member. A
// token's row is sent to a node only once, even if several members on that node need the row (Zhao et al. 2025,
// Insights into DeepSeek-V3, 2505.09343, section 4.3: node-limited routing).
#include <algorithm>
#include <cstring>
#include <map>

#include "exec/mpi/transport_parts.h"
#include "exec/transport/combine.h"

namespace orrery::mpi {

NodePlaces::NodePlaces(const std::vector<std::int64_t>& nodes, int rank)
    : nodes_(nodes), me_(static_cast<Member>(rank)) {
  for (Member m = 0; m < nodes.size(); ++m) on_[nodes[m]].push_back(m);
}

std::size_t NodePlaces::place(Member m) const {
  const auto& all = on(nodes_[m]);
  return static_cast<std::size_t>(std::find(all.begin(), all.end(), m) - all.begin());
}

NodePlaces::Member NodePlaces::relay(Member other, std::int64_t node) const {
  return nodes_[other] == node ? other : on(node)[place(other) % on(node).size()];
}

std::vector<NodePlaces::Member> NodePlaces::served() const {
  std::vector<Member> list;
  for (const auto& [node, members] : on_) {
    for (const Member m : members) {
      if (node != home() && relay(m, home()) == me_) list.push_back(m);
    }
  }
  return list;
}

TokenNumbers number_tokens(const std::vector<std::int32_t>& tokens, const std::vector<std::size_t>& rows) {
  TokenNumbers result;
  std::map<std::int32_t, std::int32_t> seen;
  for (const std::size_t row : rows) {
    const auto [it, fresh] = seen.try_emplace(tokens[row], static_cast<std::int32_t>(seen.size()));
    if (fresh) result.first_rows.push_back(row);
    result.of_row.push_back(it->second);
  }
  return result;
}

ByNodes::ByNodes(Channel& channel, const CollectiveCall& call)
    : channel_(channel), call_(call), places_(call.nodes, channel.rank), width_(width_of(call.element)) {
  for (int& tag : tags_) tag = next_tag(channel);
}

bool ByNodes::done() {
  while (stage_ < 3) {
    if (!all_done(requests_)) return false;
    begin_stage(++stage_);
  }
  return true;
}

namespace {

// Data for the members of one node, sent to the member of that node that relays them. counts: the number of elements
// for each member. numbers: the token number of every row, if the data are rows of tokens. data: the elements; of the
// rows of one token only one is sent, and the number of elements sent is then added at the end of `counts`.
struct Relay {
  std::vector<std::int64_t> counts;
  std::vector<std::int32_t> numbers;
  std::vector<std::byte> data;

  std::int64_t before(std::size_t place) const { return before_piece(counts, static_cast<int>(place)); }
};

class TwoStages final : public ByNodes {
 public:
  TwoStages(Channel& channel, const CollectiveCall& call) : ByNodes(channel, call) {
    const auto members = static_cast<std::size_t>(channel.size);
    if (call_.counts.size() == 1 && members > 1) call_.counts.assign(members, call_.counts[0]);
    if (call_.received.empty()) call_.received = call_.counts;
    tell_counts();
  }

 private:
  void begin_stage(int stage) override {
    if (stage == 1) cross();
    if (stage == 2) hand_out();
    if (stage == 3) collect();
  }

  std::int64_t home() const { return places_.home(); }
  bool of_tokens() const { return call_.row > 0; }
  const std::byte* in() const { return static_cast<const std::byte*>(call_.in); }

  // Collects this rank's data for each node, and tells the member of the node that will relay the data how many
  // elements each member of the node gets.
  void tell_counts() {
    for (const auto& [node, members] : places_.all()) {
      Relay& out = outgoing_[node];
      const bool once = of_tokens() && node != home();
      std::vector<std::size_t> rows;
      for (const Member m : members) {
        const std::int64_t first = before_piece(call_.counts, static_cast<int>(m));
        out.counts.push_back(call_.counts[m]);
        if (!once) out.data.insert(out.data.end(), in() + bytes(first), in() + bytes(first + call_.counts[m]));
        for (std::int64_t e = 0; once && e < call_.counts[m]; e += call_.row)
          rows.push_back(static_cast<std::size_t>((first + e) / call_.row));
      }
      if (once) take_once(rows, out);
      if (node != home()) move(out.counts, places_.relay(me(), node), 0, true);
    }
    for (const Member m : places_.served()) {
      incoming_[m].counts.resize(places_.neighbours().size() + (of_tokens() ? 1 : 0));
      move(incoming_[m].counts, m, 0, false);
    }
  }
  void take_once(const std::vector<std::size_t>& rows, Relay& out) const {
    TokenNumbers numbers = number_tokens(call_.tokens, rows);
    for (const std::size_t row : numbers.first_rows) {
      const std::byte* from = in() + bytes(static_cast<std::int64_t>(row) * call_.row);
      out.data.insert(out.data.end(), from, from + bytes(call_.row));
    }
    out.numbers = std::move(numbers.of_row);
    out.counts.push_back(std::ssize(numbers.first_rows) * call_.row);
  }

  void cross() {
    for (auto& [node, out] : outgoing_) {
      if (node == home()) continue;
      move(out.data, places_.relay(me(), node), 1, true);
      move(out.numbers, places_.relay(me(), node), 3, true);
    }
    for (auto& [m, in] : incoming_) {
      const std::int64_t elements = in.before(places_.neighbours().size());
      in.data.resize(static_cast<std::size_t>(bytes(of_tokens() ? in.counts.back() : elements)));
      in.numbers.resize(of_tokens() ? static_cast<std::size_t>(elements / call_.row) : 0);
      move(in.data, m, 1, false);
      move(in.numbers, m, 3, false);
    }
  }

  // Repeats a token's row, which was sent to this node only once, for every row of that token that the members expect.
  void copy_rows(Relay& in) const {
    std::vector<std::byte> copies;
    copies.reserve(in.numbers.size() * static_cast<std::size_t>(bytes(call_.row)));
    for (const std::int32_t number : in.numbers) {
      const std::byte* from = in.data.data() + bytes(number * call_.row);
      copies.insert(copies.end(), from, from + bytes(call_.row));
    }
    in.data = std::move(copies);
    in.counts.pop_back();
  }

  // Sends to each member of this node the data for it, ordered by source: the data of this rank and the data that it
  // relays.
  void hand_out() {
    for (auto& [m, in] : incoming_) {
      if (of_tokens()) copy_rows(in);
    }
    incoming_[me()] = std::move(outgoing_.at(home()));
    for (std::size_t i = 0; i < places_.neighbours().size(); ++i) {
      const Member neighbour = places_.neighbours()[i];
      std::vector<std::byte>& gathered = handed_[neighbour];
      for (const auto& [m, in] : incoming_) {
        const std::byte* from = in.data.data() + bytes(in.before(i));
        gathered.insert(gathered.end(), from, from + bytes(in.counts[i]));
      }
      if (neighbour == me()) continue;
      move(gathered, neighbour, 2, true);
    }
    for (const Member neighbour : places_.neighbours()) {
      if (neighbour == me()) continue;
      std::vector<std::byte>& landing = landed_[neighbour];
      landing.resize(static_cast<std::size_t>(bytes(through(neighbour))));
      move(landing, neighbour, 2, false);
    }
  }
  // Returns the number of elements that this rank gets from a member of this node: the member's own and those it
  // relays.
  std::int64_t through(Member neighbour) const {
    std::int64_t sum = 0;
    for (Member m = 0; m < call_.received.size(); ++m)
      sum += places_.relay(m, home()) == neighbour ? call_.received[m] : 0;
    return sum;
  }

  // Writes the received data in the order of their sources, as an all-to-all does.
  void collect() {
    landed_[me()] = std::move(handed_.at(me()));
    std::map<Member, Bytes> taken;
    auto* out = static_cast<std::byte*>(call_.out);
    for (Member m = 0; m < call_.received.size(); ++m) {
      const Member from = places_.relay(m, home());
      const Bytes n = bytes(call_.received[m]);
      if (n > 0) std::memcpy(out, landed_.at(from).data() + taken[from], static_cast<std::size_t>(n));
      taken[from] += n;
      out += n;
    }
  }

  std::map<std::int64_t, Relay> outgoing_;           // for each destination node, the data that this rank sends to it
  std::map<Member, Relay> incoming_;                 // for each sender on another node, its data to be passed on
  std::map<Member, std::vector<std::byte>> handed_;  // messages sent to the members of this node
  std::map<Member, std::vector<std::byte>> landed_;  // messages received from the members of this node
};

}  // namespace

std::unique_ptr<Pending> start_two_stages(Channel& channel, const CollectiveCall& call) {
  return std::make_unique<TwoStages>(channel, call);
}

}  // namespace orrery::mpi
