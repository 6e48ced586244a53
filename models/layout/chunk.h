#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// One block of a chunk, such as a layer.
struct Entry {
  std::uint32_t block = 0;
  std::int32_t layer = -1;
  // id of the unit frame; a tied output on the embedding's stage has the embedding's unit frame
  std::uint32_t unit = kNone;
  std::int64_t base = 0;  // number of elements before this block's weights in the chunk's flat buffers
  bool owns = true;       // whether the weights belong to this entry; false: they belong to another entry
  bool transfer = false;  // whether the block sends or receives at a stage's boundary
};

// A contiguous piece of a chunk's flat buffers that is reduced or gathered by one collective.
struct Bucket {
  std::int64_t first = 0, elements = 0;
  Dimension group = Dimension::data;
  std::int64_t tensors = 0;  // number of parameters in the bucket
  std::int64_t missing = 0;  // number of gradients, over all micro-batches, that are still to be added to the bucket
  std::vector<std::uint32_t> units;  // ids of the unit frames that the bucket covers
};

// A contiguous piece of a unit's weights that is cut over n ranks by itself: each rank owns one n-th of the piece.
struct Region {
  std::int64_t first = 0, elements = 0;  // `first` counts from the first element of the unit
  Dimension group = Dimension::data;
};
using Regions = std::vector<Region>;

// Numbers of weight elements of a chunk, by how ranks hold them.
struct WeightCounts {
  std::int64_t all = 0;                       // number of weight elements that the chunk owns
  std::int64_t own = 0;                       // number of elements whose optimizer states one rank keeps
  std::map<Dimension, std::int64_t> partial;  // number of elements whose gradients a group of this dimension sums
  std::int64_t kv = 0;  // number of elements whose gradients are summed over the ranks with the same key/value heads
};

// The part of a model that one stage runs as one virtual stage.
struct Chunk {
  std::int32_t number = 0;  // index of the chunk on its stage, as in Action::chunk
  // Number of the virtual stage, counted through all copies of the model; a chunk of a shared vocabulary has -1 or the
  // number after the last.
  std::int32_t place = 0;
  std::int32_t first_micro_batch = 0;  // first micro-batch whose forward runs through the chunk
  std::int32_t last_micro_batch = 0;   // last micro-batch whose backward runs through the chunk
  std::int64_t micro_batches = 0;      // number of micro-batches that pass through the chunk before an update
  std::vector<Entry> entries;          // the blocks, in the order of forward
  WeightCounts weights;
  std::uint32_t state = kNone;
  // ids of the frames that hold the weights, one frame for each version that is kept
  std::vector<std::uint32_t> versions;
  // ids of the blocks' frames; the index is micro-batch * number of entries + entry
  std::vector<std::uint32_t> frames;
  // ids of the frames of the host buffers that an update passes through
  std::vector<std::uint32_t> tiles;
  std::vector<Bucket> buckets;  // buckets in the order in which backward finishes them
  // for each entry, the index of the bucket of each of its parameters
  std::vector<std::vector<std::int32_t>> bucket_of;

  std::uint32_t frame_of(std::int64_t micro_batch, std::size_t entry) const {
    return frames[static_cast<std::size_t>(micro_batch) * entries.size() + entry];
  }
};

}  // namespace orrery
