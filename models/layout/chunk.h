#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// One block (layer, embedding, output, ...) of a chunk, which is the part of the model that a stage runs in one go.
struct Entry {
  std::uint32_t block = 0;
  std::int32_t layer = -1;
  // id of the frame (buffers) of the sharding unit that has the block's weights; a tied output on the same stage as the
  // embedding has the embedding's unit
  std::uint32_t unit = kNone;
  std::int64_t base = 0;  // index of the first element of this block's weights in the chunk's flat buffers
  std::int64_t frozen_base =
      0;  // the same, in units of Plan::frozen_width bytes, in the chunk's buffer of frozen weights
  // false if the weights belong to another block, as those of a tied output do
  bool owns = true;
  bool transfer = false;  // whether the block sends or receives at a stage's boundary
  bool second = false;    // whether the block is one of the frozen second model (SecondModel)
};

// A gradient or parameter bucket: a contiguous piece of a chunk's flat buffers that is reduced or gathered by one
// collective.
struct Bucket {
  std::int64_t first = 0, elements = 0;
  Dimension group = Dimension::data;
  std::int64_t tensors = 0;          // number of parameters in the bucket
  std::int64_t missing = 0;          // number of gradients that must still be added to the bucket before it is reduced
  std::int64_t awaited = 0;          // number of gradients that are added to the bucket between two reductions
  std::vector<std::uint32_t> units;  // ids of the frames of the FSDP units with the bucket's weights
};

// A contiguous piece of the weights of a sharding unit (as in FSDP) that is sharded by itself over the n ranks of a
// group: each rank owns one n-th of the piece.
struct Region {
  // first: index of the piece's first element, counted from the first element of the unit
  std::int64_t first = 0, elements = 0;
  Dimension group = Dimension::data;
};
using Regions = std::vector<Region>;

// Numbers of elements of a chunk's weights, in total and by property, such as those whose optimizer states one rank
// keeps.
struct WeightCounts {
  std::int64_t all = 0;  // elements that the chunk owns and trains
  std::int64_t own = 0;  // elements of trained weights whose optimizer states one rank keeps
  // for each type of group, the number of elements whose gradients are summed over such groups
  std::map<Dimension, std::int64_t> partial;
  std::int64_t kv = 0;        // elements whose gradients the ranks with the same key/value heads sum
  std::int64_t matrices = 0;  // elements of `all` in layers' matrices, which Muon orthogonalizes
  // of the elements whose optimizer states one rank keeps (`own`), the most that are not in layers' matrices, on the
  // rank with most of them; Muon updates these by AdamW
  std::int64_t own_vectors = 0;
  // size of Adafactor's statistics: rows + columns of matrices, elements of vectors, all before tensor ranks cut them
  std::int64_t sums = 0;
  // Returns how many of the `own` elements are in layers' matrices, on the rank with fewest of them.
  std::int64_t own_matrices() const { return own - own_vectors; }
  // elements of this rank's part of a second copy of the weights that is sharded over the ranks of a node (ZeRO++)
  std::int64_t secondary = 0;
  // bytes of the frozen weights; frozen_own: bytes of this rank's shards of the frozen weights
  Bytes frozen = 0;
  Bytes frozen_own = 0;
};

// A chunk is the part of a model (blocks, weights, buffers) that one pipeline stage runs as one virtual stage.
struct Chunk {
  std::int32_t number = 0;  // index of the chunk among the chunks of its pipeline stage
  // index of the virtual stage, counted through all copies of the model; if stages share the vocabulary, the chunk of
  // the token lookups has index -1 and that of the logits the index after the last
  std::int32_t place = 0;
  std::int32_t first_micro_batch = 0;  // first micro-batch whose forward runs through the chunk
  std::int32_t last_micro_batch = 0;   // last micro-batch whose backward runs through the chunk
  std::int64_t micro_batches = 0;      // number of micro-batches that pass through the chunk before an update
  std::vector<Entry> entries;          // the blocks, in the order of forward
  WeightCounts weights;
  std::int64_t frozen_units = 0;  // number of units (Plan::frozen_width) of the chunk's buffer of frozen weights
  std::uint32_t state = kNone;
  // ids of the frames (buffers) that hold the weights, one frame for each version of the weights that is kept
  std::vector<std::uint32_t> versions;
  // ids of the instances (frames) of buffers, one for each block and micro-batch; the index is micro-batch * number of
  // blocks + index of the block
  std::vector<std::uint32_t> frames;
  // ids of the instances (frames) of host buffers: the update of an optimizer on the host moves the states through
  // these buffers piece by piece (tiles)
  std::vector<std::uint32_t> tiles;
  std::vector<Bucket> buckets;  // buckets in the order in which backward finishes them
  // for each entry (block), the index of the bucket of each of its parameters
  std::vector<std::vector<std::int32_t>> bucket_of;

  std::uint32_t frame_of(std::int64_t micro_batch, std::size_t entry) const {
    return frames[static_cast<std::size_t>(micro_batch) * entries.size() + entry];
  }
};

}  // namespace orrery
