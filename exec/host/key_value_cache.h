#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "exec/memory/rank.h"

namespace orrery {

// Consecutive tokens of one sequence that lie one after another in a chunk's cache. at: offset in bytes of the first
// token in the buffer kKeysValues.
struct CachedRun {
  std::int64_t first = 0, count = 0;
  Bytes at = 0;
};

// Says which bytes of a rank's caches of keys and values hold which tokens. The cache of a layer is cut into blocks of
// Generation::kv_block tokens; a sequence takes a free block whenever its tokens have filled the ones it has, and in a
// layer with a sliding window gives back blocks whose tokens no later query can see. Holds no keys and values itself.
class KeyValueCache {
 public:
  explicit KeyValueCache(const Rank& rank);

  // Returns the cached tokens [first, end) of a sequence of this rank in the layer of a frame, in order.
  std::vector<CachedRun> runs(const Frame& frame, std::int64_t sequence, std::int64_t first, std::int64_t end) const;
  // Takes blocks for the tokens [first, end), which follow those that were stored before, and returns where to write
  // them; tokens outside the window of every later query are left out.
  std::vector<CachedRun> store(const Frame& frame, std::int64_t sequence, std::int64_t first, std::int64_t end);
  void clear();  // gives back all blocks
  // Returns the number of blocks that all sequences and layers have.
  std::int64_t blocks() const;

 private:
  struct Layer {
    Bytes at = 0, row = 0;    // offset of the layer in the chunk's buffer; bytes of a token
    std::int64_t window = 0;  // number of keys that a query sees, itself included; 0: all
    std::int64_t blocks = 0;  // number of blocks of all sequences
    std::vector<std::int64_t> free;
    std::vector<std::vector<std::int64_t>> held;  // for each sequence and block of its tokens, the block; -1: none
  };

  const Layer& layer_of(const Frame& frame) const { return layers_.at({frame.state, frame.layer}); }

  std::int64_t block_ = 16;  // tokens of a block
  std::map<std::pair<std::uint32_t, std::int32_t>, Layer> layers_;
};

}  // namespace orrery
