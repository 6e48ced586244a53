#pragma once

#include <cstdint>
#include <vector>

#include "models/layers/layer_tape.h"

namespace orrery {

// The settings of the vision encoder's blocks on one rank. Rows are patches of all images of a micro-batch.
struct VisionContext {
  explicit VisionContext(const BlockContext& text);
  VisionContext(const VisionContext&) = delete;
  VisionContext& operator=(const VisionContext&) = delete;

  Spec spec;             // the spec with the encoder as its model (encoder_spec())
  BlockContext patches;  // settings of the encoder's layers, which layer_block() builds
  // settings of the projectors, in which each row is one square of patches that are joined into an image token
  BlockContext projected;
};

// Builds the blocks of the vision encoder before the embedding, apart from its layers:
//   patches    pixels -> (patches, hidden of the encoder), with learned positions if the encoder has them
//   projector  (patches, hidden of the encoder) -> (image tokens, hidden of the text model)
// In the model (DeepStack), projectors beyond the first read earlier layers of the encoder. Here all projectors read
// the last layer, which takes the same work and memory, and their results are summed.
Block patches_block(const VisionContext& c, std::vector<Op>& ops);
Block projector_block(const VisionContext& c, std::int64_t text_hidden, std::vector<Op>& ops);

// Records the copy of image tokens to their places among the embeddings x, which hold all rows on every tensor rank;
// then every rank keeps its local rows (sequence parallelism).
Id place_images(LayerTape& layer, Id x, Id images);

}  // namespace orrery
