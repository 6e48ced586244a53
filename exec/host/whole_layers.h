#pragma once

#include <cstdint>
#include <vector>

#include "exec/host/prepare.h"
#include "exec/memory/rank.h"

namespace orrery {

// Consecutive elements of a layer that one member of the data-parallel group owns.
struct OwnedRun {
  std::int64_t flat = 0, count = 0;  // index of the first element in the chunk's flat buffers, and number of elements
  std::int64_t share = 0;            // index of the first element in the member's share of the layer
  std::int64_t shard = 0;            // index of the first element in the member's shards
};

// A round of Muon's orthogonalization, as its ops see it: layers of the same shape, one for each data-parallel rank (or
// fewer in the last round), and the places of their elements in the buffer of whole layers (kBuckets). The buffer has
// areas of one layer each. If ranks have shards, a layer is the shares of all members, one after another.
class LayerRound {
 public:
  // state: id of the frame with the chunk's states; first: index of the first layer's first element in its flat
  // buffers.
  LayerRound(const Rank& rank, std::uint32_t state, std::int64_t first);

  // Returns the index in the flat buffers of the first element of each layer of the round.
  const std::vector<std::int64_t>& layers() const { return layers_; }
  const Block& block() const { return *block_; }  // the block of all layers of the round

  bool sharded() const { return members_ > 1; }
  // Returns the runs of the layer that begins at element `layer` which member number `member` owns.
  std::vector<OwnedRun> runs(std::int64_t layer, std::int64_t member) const;
  // Returns the number of members that own parts of a layer: 1 if ranks own complete layers.
  std::int64_t members() const { return members_; }
  std::int64_t share() const { return share_; }  // number of elements of one member's share of a layer
  std::int64_t area() const { return share_ * members_; }

  // Return the index of the first element of an area of the buffer: that of the layer which this rank orthogonalizes;
  // that of the shares which it sends and gets back; that in which other ranks' complete layers arrive; that of the
  // first of the tensor-parallel ranks' parts.
  std::int64_t own_area() const { return sharded() ? area() : 0; }
  static std::int64_t shares_area() { return 0; }
  std::int64_t arrivals_area() const { return data_ranks_ > 1 ? area() : 0; }
  std::int64_t parts_area() const { return (data_ranks_ > 1 ? 2 : 1) * area(); }

 private:
  const Rank& rank_;
  std::uint32_t state_;
  std::int64_t data_ranks_, members_ = 1, share_ = 0;
  std::vector<std::int64_t> layers_;
  const Block* block_ = nullptr;
};

// Whether a collective moves layers of a round between the ranks.
bool moves_layers(const Rank& rank, const Launch& launch);
// Completes the arguments of such a collective's transport call.
void prepare_layers(const Rank& rank, const Collective& work, const Launch& launch, CollectiveCall& call);

}  // namespace orrery
