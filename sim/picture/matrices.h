#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// A part of a matrix, in rows and columns of the matrix as it is drawn, and the ranks that hold this part, as indices
// into MatrixCut::holders.
struct HeldPart {
  std::int64_t row = 0, rows = 0, column = 0, columns = 0;
  std::vector<std::size_t> holders;
};

// A rank that holds parts of a matrix. label: "t1" for the second tensor rank, "e3" for the fourth of the ranks that
// hold different experts ("e3.1" if an expert's matrix is cut too), "s2 t1" if pipeline stages share the matrix.
struct Holder {
  std::int64_t rank = 0;
  std::string label;
};

// The share that one data rank has of a rank's part of a matrix (ZeRO sharding), as a range in fractions of the part.
struct Share {
  std::int64_t member = 0;  // index of the data rank in its group
  double begin = 0, end = 0;
};

// One matrix of a layer, cut over the ranks of one replica of the model. The matrices of all experts are drawn as one,
// side by side (`across`) or one below the other. (rows, columns) is the size as drawn, and (out, in) that of one
// expert's matrix; without experts the two are the same.
struct MatrixCut {
  std::string name;
  std::int64_t out = 0, in = 0, experts = 0;
  std::int64_t rows = 0, columns = 0;
  bool across = false;
  bool frozen = false;  // whether the matrix is frozen, that is, not trained
  std::vector<Holder> holders;
  std::vector<HeldPart> parts;  // the distinct parts, which do not overlap and together are the matrix
  // The shares that data ranks have (ZeRO sharding) in one rank's part of the matrix, and the number of data ranks that
  // share this part (sharers). The rank is the first that holds any part. The list is empty if the part is not sharded,
  // or if the shares are too many to draw.
  std::vector<Share> shares;
  std::int64_t sharers = 1;
  bool shares_weights = false;  // whether data ranks share the weights too, not only the optimizer states
};

// The matrices of one type of layers, or of the model outside the layers: attention, MLP, experts, embedding and head.
// about: the layers that have such matrices, "layers 0-2, 4 (4 layers)". vectors: number of vectors (weights of norms,
// biases and others); vector_elements: elements of all vectors together, on one rank.
struct MatrixPanel {
  std::string title = "", about = "";
  std::vector<MatrixCut> matrices = {};
  std::int64_t vectors = 0, vector_elements = 0;
};

// Returns the matrices of every type of layers of the model, cut over ranks as the weights in the plan are.
std::vector<MatrixPanel> matrix_panels(const Spec& spec, const Plan& plan);

}  // namespace orrery
