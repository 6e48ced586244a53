#include "models/planner/vocabulary_exchange.h"

namespace orrery {

bool VocabularyExchange::issue(const StageTransfer& transfer) {
  const StageExchange what = transfer.exchange;
  if (what == StageExchange::none) return false;
  const bool input = what == StageExchange::token_embeddings || what == StageExchange::embedding_gradients;
  const Chunk& chunk = chunks_[input ? schedule_.input_chunk : schedule_.output_chunk];
  const std::size_t e = input || what == StageExchange::sums ? chunk.entries.size() - 1 : 0;
  const Block& block = plan_.blocks[chunk.entries[e].block];
  const bool back = what == StageExchange::embedding_gradients || what == StageExchange::hidden_gradients;
  const std::uint32_t frame = chunk.frames[transfer.micro_batch * chunk.entries.size() + e];
  for (const std::uint32_t op : what == StageExchange::sums ? block.exchange : back ? block.backward : block.forward)
    writer_.emit(op, frame);
  return true;
}

}  // namespace orrery
