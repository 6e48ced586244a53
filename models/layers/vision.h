#pragma once

#include <cstdint>
#include <vector>

#include "models/layers/layer_tape.h"

namespace orrery {

// The sizes of the vision encoder's blocks on one rank. Rows are patches of all images of a micro-batch.
struct VisionContext {
  explicit VisionContext(const BlockContext& text);
  VisionContext(const VisionContext&) = delete;
  VisionContext& operator=(const VisionContext&) = delete;

  Spec spec;               // encoder_spec()
  BlockContext patches;    // the encoder's layers; layer_block() builds one from this context
  BlockContext projected;  // the projectors, whose rows are squares of joined patches
};

// Builds the blocks of the vision encoder before the embedding, apart from its layers:
//   patches    pixels -> (patches, hidden of the encoder), with learned positions if the encoder has them
//   projector  (patches, hidden of the encoder) -> (image tokens, hidden of the text model)
// Projectors beyond the first read earlier layers in the model (DeepStack); here they read the last one, with the same
// work and memory, and their results are summed.
Block patches_block(const VisionContext& c, std::vector<Op>& ops);
Block projector_block(const VisionContext& c, std::int64_t text_hidden, std::vector<Op>& ops);

// Records the image tokens taking their places among the embeddings x, which hold all rows on every tensor rank; then
// every rank keeps its local rows (sequence parallelism).
Id place_images(LayerTape& layer, Id x, Id images);

}  // namespace orrery
