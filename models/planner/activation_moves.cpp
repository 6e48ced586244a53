#include "models/planner/activation_moves.h"

#include <fmt/format.h>

namespace orrery {

ActivationMoves::ActivationMoves(Draft& draft, TaskWriter& writer) : StepPart(draft, writer) { writer.watch(*this); }

void ActivationMoves::begin_slot() {
  alive_.assign(plan_.buffers, 0);
  guests_.clear();
}

void ActivationMoves::issued(const Op& op, std::uint32_t frame, TaskId) {
  const auto set = [&](const std::vector<Operand>& operands, char on) {
    for (const Operand& o : operands) alive_[plan_.frames[frame_of(plan_, frame, o)].first_buffer + o.slot] = on;
  };
  set(op.allocates, 1);
  set(op.frees, 0);
}

// All live buffers of a micro-batch after its forward, block by block; buffers of the stage's send and receive blocks
// are still in transfer, and left out.
std::vector<ActivationMoves::Parcel> ActivationMoves::parcels_of(const ActivationMove& move) const {
  std::vector<Parcel> parcels;
  const Chunk& chunk = chunks_.front();
  for (std::size_t e = 0; e < chunk.entries.size(); ++e) {
    const std::uint32_t frame = chunk.frames[move.micro_batch * chunk.entries.size() + e];
    const Block& block = plan_.blocks[plan_.frames[frame].block];
    for (std::uint16_t s = 0; s < block.buffers.size() && !chunk.entries[e].transfer; ++s) {
      const Bytes bytes = block.buffers[s].bytes;
      if (bytes > 0 && alive_[plan_.frames[frame].first_buffer + s] != 0) parcels.push_back({frame, s, bytes});
    }
  }
  return parcels;
}

// The frame in which the partner keeps the parcels, with a slot for each.
std::uint32_t ActivationMoves::guest_frame(const std::vector<Parcel>& parcels, std::int32_t micro_batch) {
  std::string key = "guest";
  Block block{.name = "guest", .role = BlockRole::guest};
  for (const Parcel& p : parcels) {
    const BlockBuffer& slot = plan_.blocks[plan_.frames[p.frame].block].buffers[p.slot];
    block.buffers.push_back({"guest's " + slot.name, p.bytes, Category::activations});
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

bool ActivationMoves::issue(const Crossing& crossing) {
  if (crossing.move >= 0) move(crossing);
  return crossing.move >= 0;
}

// One message for each buffer, all in one batch. The sender frees what it sends, the receiver allocates what it
// receives.
void ActivationMoves::move(const Crossing& crossing) {
  const ActivationMove& move = schedule_.moves[crossing.move];
  const bool own = move.stage == draft_.at.stage, away = crossing.forward, send = crossing.send;
  std::vector<Parcel>& parcels = parcels_[{crossing.move, draft_.at.rank_kind}];
  if (own && away) parcels = parcels_of(move);
  if (!own && away) guests_[crossing.move] = guest_frame(parcels, move.micro_batch);
  const std::int64_t hops = own ? move.partner - move.stage : move.stage - move.partner;
  for (std::size_t i = 0; i < parcels.size(); ++i) {
    const std::uint32_t frame = own ? parcels[i].frame : guests_.at(crossing.move);
    const auto slot = own ? parcels[i].slot : static_cast<std::uint16_t>(i);
    const Operand buffer = orrery::own(slot, send ? Access::read : Access::write);
    Op op = {.name = plan_.blocks[plan_.frames[frame].block].buffers[slot].name + (away ? " to a partner" : " back"),
             .work = Transfer{send, hops, parcels[i].bytes},
             .phase = away ? Phase::forward : Phase::backward,
             .lane = send ? LaneKind::send_partner : LaneKind::receive_partner,
             .operands = {buffer}};
    (send ? op.frees : op.allocates).push_back(buffer);
    const bool joins = i > 0 && spec_.software.communication.batched_p2p;
    const TaskId task = writer_.emit(op, frame, {}, joins ? kJoinsPrevious : std::uint8_t{0});
    writer_.ends().parcels[{crossing.move, away, i, draft_.at.rank_kind}].push_back(task);
  }
}

}  // namespace orrery
