#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/layers/layer_tape.h"

namespace orrery {

// Records the loss of torch's DataParallel: outputs are gathered on rank 0, which alone computes the loss and scatters
// its gradient.
void gathered_cross_entropy(LayerTape& layer, Id logits, std::int64_t columns);
// Records the loss of logits and the loss's gradient. If replicas > 0, the logits are those of that many data-parallel
// ranks, one rank's after the other's.
void cross_entropy(LayerTape& layer, Id logits, std::int64_t columns, std::int64_t replicas = 0);

// Records the loss of pairs of samples (Preference) of a policy, from its logits and the reference's sums.
void preference_loss(LayerTape& layer, Id logits, std::int64_t columns);
// Records cross-entropy up to the sums over the vocabulary, without the losses: returns the buffer with the sum of
// exponentials of each row and, after all of these, with the label's logit of each row.
Id label_sums(LayerTape& layer, Id logits, std::int64_t columns);

// Index, among the buffers of the trained model's output block, of the buffer that the second model's last block
// writes.
inline constexpr Id kBeside = kOutputGradient + 1;
// Records the loss of a student, from its logits and the teacher's.
void distillation_loss(LayerTape& layer, Id logits, std::int64_t columns);
// Records, at the beginning of a block of a student, the loss of the hidden states that the block reads (kInput) beside
// those that a block of the teacher has read (Scope::beside). Records nothing if no loss compares what this layer
// reads, or the final norm, whose number is that of the layers.
void feature_loss(LayerTape& layer, std::int64_t number);
// The transfers by which a frozen model on ranks of its own (SecondModel) gives its output to the ranks of the model
// that trains, micro-batch by micro-batch (models/partition/hand_over.h).

// Records that the last stage of the frozen model sends its logits (rows, columns), in the width of activations.
void send_logits(LayerTape& layer, Id logits, std::int64_t columns);
// Records that the output block of the model that trains receives a teacher's logits, and casts them to fp32 in the
// buffer `to` (rows, columns).
void receive_logits(LayerTape& layer, Id to, std::int64_t columns);
// These functions record the same of a reference's label_sums(), whose two numbers of each row are sent one after the
// other.
void send_sums(LayerTape& layer, Id sums);
void receive_sums(LayerTape& layer, Id to);

// Builds the last block of the second model, which hands its result to the output block of the model that trains: a
// teacher's fp32 logits, or a reference's label_sums().
Block second_output_block(const BlockContext& context, std::vector<Op>& ops);

}  // namespace orrery
