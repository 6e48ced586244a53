#include "models/planner/activation_eviction.h"

#include <fmt/format.h>

namespace orrery {

ActivationEviction::ActivationEviction(Draft& draft, TaskWriter& writer) : StepPart(draft, writer) {
  writer.watch(*this);
}

void ActivationEviction::begin_slot() {
  alive_.assign(plan_.buffers, 0);
  frames_.clear();
}

void ActivationEviction::issued(const Op& op, std::uint32_t frame, TaskId) {
  const auto set = [&](const std::vector<Operand>& operands, char on) {
    for (const Operand& o : operands) alive_[plan_.frames[frame_of(plan_, frame, o)].first_buffer + o.slot] = on;
  };
  set(op.allocates, 1);
  set(op.frees, 0);
}

// Returns all activation buffers of a micro-batch that are still allocated after its forward pass, block by block,
// except buffers of the stage's send and receive blocks, which are still in transfer.
std::vector<ActivationEviction::EvictedBuffer> ActivationEviction::evicted_by(const Eviction& move) const {
  std::vector<EvictedBuffer> evicted;
  const Chunk& chunk = chunks_.front();
  for (std::size_t e = 0; e < chunk.entries.size(); ++e) {
    const std::uint32_t frame = chunk.frames[move.micro_batch * chunk.entries.size() + e];
    const Block& block = plan_.blocks[plan_.frames[frame].block];
    for (std::uint16_t s = 0; s < block.buffers.size() && !chunk.entries[e].transfer; ++s) {
      const Bytes bytes = block.buffers[s].bytes;
      if (bytes > 0 && alive_[plan_.frames[frame].first_buffer + s] != 0) evicted.push_back({frame, s, bytes});
    }
  }
  return evicted;
}

// Returns the id of the frame (instance of buffers) in which the partner stage keeps evicted activations; the frame has
// one buffer for each evicted buffer.
std::uint32_t ActivationEviction::frame_of_evicted(const std::vector<EvictedBuffer>& evicted,
                                                   std::int32_t micro_batch) {
  std::string key = "evicted";
  Block block{.name = "evicted", .role = BlockRole::evicted};
  for (const EvictedBuffer& p : evicted) {
    const BlockBuffer& slot = plan_.blocks[plan_.frames[p.frame].block].buffers[p.slot];
    block.buffers.push_back({"evicted " + slot.name, p.bytes, Category::activations});
    key += fmt::format(" {}", p.bytes);
  }
  const auto [it, fresh] = draft_.blocks.try_emplace(key, static_cast<std::uint32_t>(plan_.blocks.size()));
  if (fresh) plan_.blocks.push_back(std::move(block));
  const std::uint32_t frame = draft_.add_frame(it->second);
  plan_.frames[frame].micro_batch = micro_batch;
  writer_.take_frames();
  alive_.resize(plan_.buffers, 0);
  return frame;
}

bool ActivationEviction::issue(const StageTransfer& transfer) {
  if (transfer.move >= 0) move(transfer);
  return transfer.move >= 0;
}

// Writes the transfer of one micro-batch's activations between a stage and its partner: one message for each buffer,
// all in one batch. The sender frees the buffers after the send, the receiver allocates them.
void ActivationEviction::move(const StageTransfer& transfer) {
  const Eviction& move = schedule_.moves[transfer.move];
  const bool own = move.stage == draft_.at.stage, away = transfer.forward, send = transfer.send;
  std::vector<EvictedBuffer>& evicted = evicted_[{transfer.move, draft_.at.rank_kind}];
  if (own && away) evicted = evicted_by(move);
  if (!own && away) frames_[transfer.move] = frame_of_evicted(evicted, move.micro_batch);
  const std::int64_t hops = own ? move.partner - move.stage : move.stage - move.partner;
  for (std::size_t i = 0; i < evicted.size(); ++i) {
    const std::uint32_t frame = own ? evicted[i].frame : frames_.at(transfer.move);
    const auto slot = own ? evicted[i].slot : static_cast<std::uint16_t>(i);
    const Operand buffer = orrery::own(slot, send ? Access::read : Access::write);
    Op op = {.name = plan_.blocks[plan_.frames[frame].block].buffers[slot].name + (away ? " to a partner" : " back"),
             .work = Transfer{send, hops, evicted[i].bytes},
             .phase = away ? Phase::forward : Phase::backward,
             .lane = send ? LaneKind::send_partner : LaneKind::receive_partner,
             .operands = {buffer}};
    (send ? op.frees : op.allocates).push_back(buffer);
    const bool joins = i > 0 && spec_.software.communication.batched_p2p;
    const TaskId task = writer_.emit(op, frame, {}, joins ? kJoinsPrevious : std::uint8_t{0});
    writer_.ends().evicted.push_back(
        {{transfer.move, 0, away, draft_.at.rank_kind, static_cast<std::int64_t>(i)}, task});
  }
}

}  // namespace orrery
