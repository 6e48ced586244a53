// Changes of the format of numbers.
#pragma once

#include <cstdint>

#include "models/base/narrow.h"
#include "models/base/units.h"
#include "models/base/weight_format.h"

namespace orrery {

// An element-wise change of the data type, from `from` to `to` bytes per element; to 0 bytes: the kernel only finds the
// largest magnitude, from which the scale of a cast to 8 bits follows. transpose: also writes a transposed copy. parts:
// number of arrays of `elements` elements that the kernel sums as it reads them (what the ranks of a group sent each
// other); in plans, the collective before it has summed them already, into the array that the op reads. own_kernel: in
// generated text, whether a kernel of its own makes the change; else the kernel before it writes the numbers so.
struct Cast {
  std::int64_t elements = 0;
  Bytes from = 2, to = 4;
  bool transpose = false;
  std::int64_t parts = 1;
  bool own_kernel = false;
};

// The op converts `elements` numbers of `wide` bytes to a format of few bits. The numbers are cut into `pieces` equal
// runs (the last ones may be shorter), each of which is converted by itself and takes piece_bytes(). nodes: if above 1,
// run number n * (pieces / nodes) + p is written as number p * nodes + n, so that the runs of ranks with the same place
// p in their nodes follow each other (ZeRO++, 2306.10209, section 3.3: tensor slice reordering). summands: if above 0,
// the op reads no wide numbers, but this many runs of converted numbers one after another, each laid out as the result,
// and converts their sum.
struct Quantize {
  NarrowFormat format;
  std::int64_t elements = 0, pieces = 1;
  Bytes wide = 2;
  std::int64_t nodes = 1, summands = 0;

  Bytes piece_bytes() const { return narrow_bytes(format, ceil_div(elements, pieces)); }
};

// The op converts `elements` numbers back from a format of few bits to numbers of `wide` bytes; the numbers were cut
// into `pieces` runs (Quantize). summands: if above 1, the op reads this many such buffers one after another and
// converts the sum of their numbers, times `factor`. adds: the result is added to numbers of `wide` bytes.
struct Dequantize {
  NarrowFormat format;
  std::int64_t elements = 0, pieces = 1;
  Bytes wide = 2;
  std::int64_t summands = 1;
  double factor = 1;
  bool adds = false;

  Bytes piece_bytes() const { return narrow_bytes(format, ceil_div(elements, pieces)); }
};

// The op rounds a matrix (rows, columns) to a format of few bits and back, and writes the result with the width of
// activations: quantisation-aware training has one such op for the weight and one for the input of each linear layer.
// The gradient of this op is that of the identity (the straight-through estimator: Bengio et al. 2013, 1308.3432), so
// that backward has no such op.
struct FakeQuantize {
  WeightFormat format;
  std::int64_t rows = 0, columns = 0;
  bool fused = true;
};

}  // namespace orrery
