// Losses and their gradients.
#pragma once

#include <cstdint>

#include "models/base/dimension.h"

namespace orrery {

// One step of cross-entropy over logits (rows, columns) whose vocabulary is sharded over a group; between the steps
// `rows` values are all-reduced. maximum: finds the largest logit of each row. exponent: subtracts the maximum,
// exponentiates, sums. loss: takes the log of the sum and the label's logit. gradient: computes softmax - one_hot.
// rescale: converts sums of exponents relative to this rank's own maximum to the maximum of all ranks. combine:
// computes the gradient of the hidden states (rows, columns) from the part that comes from the exponents and the part
// that comes from the labels.
struct CrossEntropy {
  enum class Part : std::uint8_t { maximum, exponent, loss, gradient, rescale, combine };
  std::int64_t rows = 0, columns = 0;
  Part part = Part::maximum;
  bool fused = true;
  // With multi-token prediction a token has a row for each prediction, in the order of Load: for each of `parts` runs
  // of tokens, the rows of all predictions one after another. Every prediction but the first has a loss of smaller
  // weight.
  std::int64_t predictions = 1, parts = 1;
  Dimension over = Dimension::tensor;
  // for the step `loss`: number of times that the training framework's metrics compute the loss again from the logits
  std::int64_t metrics = 0;
  // whether the op reads the logits in the data type of activations, without a cast to fp32; backward then computes the
  // exponents again
  bool narrow = false;
  // for the step `gradient`: whether each row's gradient is multiplied by a number of its own, which the op reads
  // (Preference)
  bool weighted = false;
};

// One step of the loss of a student beside a teacher, over the fp32 logits (rows, columns) of both, whose vocabulary is
// sharded over the tensor group. The loss of a row is cross_entropy * CE + divergence * temperature^2 * KL(teacher ||
// student), where KL divides all logits by the temperature. Between the steps, ranks all-reduce `values` numbers of
// each row. maximum: finds the largest logit of either model. exponent: sums exponentials of the student's logits, of
// the student's and of the teacher's logits divided by the temperature, and the products of the latter with the
// difference of both models' logits; and takes the label's logit. loss: computes the losses of the rows. gradient:
// overwrites the student's logits with their gradient. Each step is one kernel.
struct Distillation {
  enum class Part : std::uint8_t { maximum, exponent, loss, gradient };
  std::int64_t rows = 0, columns = 0;
  Part part = Part::maximum;
  double temperature = 1, divergence = 1, cross_entropy = 0;

  static constexpr std::int64_t kMaxima = 2, kSums = 5;  // numbers of a row that `maximum` and `exponent` write
};

// One step of the loss of a student's hidden states, or of their projection, (rows, columns), beside a teacher's. The
// loss of a row is `weight` times the mean over the columns of the squared difference. loss: writes the sum of the
// rows' losses. gradient: writes the gradient of the student's. Each step is one kernel, which reads both.
struct FeatureLoss {
  enum class Part : std::uint8_t { loss, gradient };
  std::int64_t rows = 0, columns = 0;
  Part part = Part::loss;
  double weight = 1;
};

// The loss of direct preference optimization (SecondModel), in one kernel, from the sums of cross-entropy (`exponent`)
// of the policy and of the reference over the rows of `samples` samples, of which each pair is a chosen and a rejected
// one. The op writes the loss of each row's pair, and the factor by which the row's gradient of cross-entropy is
// multiplied.
struct Preference {
  std::int64_t rows = 0, samples = 0;
  double beta = 0.1;
};

}  // namespace orrery
