// This file has a hierarchical all-to-all that returns token rows from experts. Inside a node, all rows for a member of
// another node first go to the local member that relays to that member; the relay sums the rows of each token and sends
// only the sums to the other node. two_stages.cpp sends rows to the experts.
#include <algorithm>
#include <cstring>
#include <map>

#include "exec/mpi/transport_parts.h"
#include "exec/transport/combine.h"

namespace orrery::mpi {
namespace {

using Member = NodePlaces::Member;

// The rows that one member of the group wants from a node. counts: the number of elements from each member on that
// node, followed by the number of elements of all sums. numbers: the token number of every row. sums: the received
// sums.
struct Wanted {
  std::vector<std::int64_t> counts;
  std::vector<std::int32_t> numbers;
  std::vector<std::byte> sums;
};

class TokenSums final : public ByNodes {
 public:
  TokenSums(Channel& channel, const CollectiveCall& call) : ByNodes(channel, call) { say_what_is_wanted(); }

 private:
  void begin_stage(int stage) override {
    if (stage == 1) gather();
    if (stage == 2) cross();
    if (stage == 3) collect();
  }

  const std::byte* piece_for(Member m) const {
    return static_cast<const std::byte*>(call_.in) + bytes(before_piece(call_.counts, static_cast<int>(m)));
  }

  void say_what_is_wanted() {
    for (const auto& [node, members] : places_.all()) {
      if (node == places_.home()) continue;
      Wanted& mine = wanted_[node];
      std::vector<std::size_t> rows;
      for (const Member m : members) {
        const std::int64_t first = before_piece(call_.received, static_cast<int>(m));
        mine.counts.push_back(call_.received[m]);
        for (std::int64_t e = 0; e < call_.received[m]; e += call_.row)
          rows.push_back(static_cast<std::size_t>((first + e) / call_.row));
      }
      TokenNumbers numbers = number_tokens(call_.tokens, rows);
      mine.numbers = std::move(numbers.of_row);
      mine.counts.push_back(std::ssize(numbers.first_rows) * call_.row);
      move(mine.counts, places_.relay(me(), node), 0, true);
    }
    for (const Member m : places_.served()) {
      served_[m].counts.resize(places_.neighbours().size() + 1);
      move(served_[m].counts, m, 0, false);
    }
  }

  // Sends, to the member of each other node that relays to this rank, the token numbers of the rows that this rank is
  // to receive. Sends one message of rows to each member of this node. It has the rows for this member, and the rows
  // for those members of other nodes to which this member relays, in the order of the receivers.
  void gather() {
    for (auto& [node, mine] : wanted_) move(mine.numbers, places_.relay(me(), node), 1, true);
    for (auto& [m, theirs] : served_) {
      const auto members = static_cast<int>(places_.neighbours().size());
      theirs.numbers.resize(static_cast<std::size_t>(before_piece(theirs.counts, members) / call_.row));
      move(theirs.numbers, m, 1, false);
    }
    for (std::size_t i = 0; i < places_.neighbours().size(); ++i) {
      const Member neighbour = places_.neighbours()[i];
      std::vector<std::byte>& out = handed_[neighbour];
      for (Member m = 0; m < call_.counts.size(); ++m) {
        if (m != neighbour && (places_.node_of(m) == places_.home() || places_.relay(m, places_.home()) != neighbour))
          continue;
        out.insert(out.end(), piece_for(m), piece_for(m) + bytes(call_.counts[m]));
      }
      if (neighbour == me()) continue;
      move(out, neighbour, 2, true);
      std::vector<std::byte>& landing = landed_[neighbour];
      std::int64_t elements = call_.received[neighbour];
      for (const auto& [m, theirs] : served_) elements += theirs.counts[i];
      landing.resize(static_cast<std::size_t>(bytes(elements)));
      move(landing, neighbour, 2, false);
    }
  }

  // For each member of another node to which this rank relays: sums, token by token, the rows that members of this node
  // have for it, and sends it the sums.
  void cross() {
    landed_[me()] = std::move(handed_.at(me()));
    std::map<Member, Bytes> taken;  // for each member of this node, the bytes of its message used so far
    for (Member m = 0; m < call_.counts.size(); ++m) {
      const auto theirs = served_.find(m);
      if (theirs != served_.end()) {
        add_up(theirs->second, taken);
        move(theirs->second.sums, m, 3, true);
      } else if (m == me()) {
        for (const Member neighbour : places_.neighbours()) {
          own_[neighbour] = landed_.at(neighbour).data() + taken[neighbour];
          taken[neighbour] += bytes(call_.received[neighbour]);
        }
      }
    }
    for (auto& [node, mine] : wanted_) {
      mine.sums.resize(static_cast<std::size_t>(bytes(mine.counts.back())));
      move(mine.sums, places_.relay(me(), node), 3, false);
    }
  }
  void add_up(Wanted& theirs, std::map<Member, Bytes>& taken) const {
    theirs.sums.assign(static_cast<std::size_t>(bytes(theirs.counts.back())), std::byte{});
    std::size_t row = 0;
    for (std::size_t i = 0; i < places_.neighbours().size(); ++i) {
      const Member neighbour = places_.neighbours()[i];
      Bytes& at = taken[neighbour];
      for (std::int64_t e = 0; e < theirs.counts[i]; e += call_.row, at += bytes(call_.row))
        combine(call_.element, Reduction::sum, landed_.at(neighbour).data() + at,
                theirs.sums.data() + bytes(theirs.numbers[row++] * call_.row), call_.row);
    }
  }

  // Writes the received rows in the order of their senders, as an all-to-all does. If rows came as sums per token from
  // another node, the sum becomes the token's first row, and its other rows become zeros.
  void collect() {
    auto* out = static_cast<std::byte*>(call_.out);
    std::map<std::int64_t, std::size_t> row;  // for each sending node, the number of its rows written so far
    // for each sending node, the number of tokens whose sums are written so far
    std::map<std::int64_t, std::int32_t> filled;
    for (Member m = 0; m < call_.received.size(); ++m) {
      const Bytes n = bytes(call_.received[m]);
      const std::int64_t node = places_.node_of(m);
      if (node == places_.home()) {
        if (n > 0) std::memcpy(out, own_.at(m), static_cast<std::size_t>(n));
        out += n;
        continue;
      }
      const Wanted& mine = wanted_.at(node);
      const auto size = static_cast<std::size_t>(bytes(call_.row));
      for (const std::byte* end = out + n; out < end; out += size) {
        const std::int32_t number = mine.numbers[row[node]++];
        std::memset(out, 0, size);
        if (number < filled[node]) continue;
        std::memcpy(out, mine.sums.data() + bytes(number * call_.row), size);
        ++filled[node];
      }
    }
  }

  std::map<std::int64_t, Wanted> wanted_;            // for each sending node, the rows to be received from it
  std::map<Member, Wanted> served_;                  // for each member of another node, the rows summed for it here
  std::map<Member, std::vector<std::byte>> handed_;  // messages sent to the members of this node
  std::map<Member, std::vector<std::byte>> landed_;  // messages received from the members of this node
  std::map<Member, const std::byte*> own_;           // for each sender on this node, its rows for this rank
};

}  // namespace

std::unique_ptr<Pending> start_token_sums(Channel& channel, const CollectiveCall& call) {
  return std::make_unique<TokenSums>(channel, call);
}

}  // namespace orrery::mpi
