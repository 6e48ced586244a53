#include "kernels/cuda/cross_entropy.h"

#include "kernels/reference/cross_entropy.h"
#include "tests/kernels/cuda/device.h"

namespace orrery::kernels::cuda {
namespace {

using CrossEntropy = OnDevice;

constexpr std::int64_t kRows = 11;
constexpr double kScale = 1.0 / 16;

// A vocabulary in two parts, of which the second ends in padding; parts of odd widths, and of whole packs.
struct VocabularyCase {
  VocabularyCase(Type type, std::int64_t vocabulary, std::int64_t columns)
      : parts{{0, vocabulary}, {columns, vocabulary}},
        logits(type, kRows, 2 * columns, 0, 1),
        halves{Operand(type, kRows, columns, 0, 2), Operand(type, kRows, columns, 0, 3)},
        maxima{Memory(4 * kRows), Memory(4 * kRows)},
        sums{Memory(8 * kRows), Memory(8 * kRows)} {
    for (std::int64_t r = 0; r < kRows; ++r) labels.push_back(r * (vocabulary - 1) / (kRows - 1));
    for (std::int64_t h = 0; h < 2; ++h) {
      std::vector<float> half;
      for (std::int64_t r = 0; r < kRows; ++r) {
        const double* row = logits.reference().row(r) + h * columns;
        half.insert(half.end(), row, row + columns);
      }
      const auto bytes = stored(type, half);
      ORRERY_CHECK_CUDA(cudaMemcpy(halves[h].memory.as<void>(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
    }
  }

  VocabularyPart parts[2];
  Operand logits;
  Operand halves[2];
  Memory maxima[2], sums[2];
  std::vector<std::int64_t> labels;
};

void expect_reference(Type type, std::int64_t vocabulary, std::int64_t columns) {
  VocabularyCase c(type, vocabulary, columns);
  const Memory labels(c.labels);
  for (int h = 0; h < 2; ++h) row_maxima(c.halves[h].view(), c.parts[h], c.maxima[h].as<float>(), nullptr);
  std::vector<float> maxima = c.maxima[0].read<float>();
  for (std::int64_t r = 0; r < kRows; ++r) maxima[r] = std::max(maxima[r], c.maxima[1].read<float>()[r]);
  const Memory shift(maxima);
  for (int h = 0; h < 2; ++h) {
    row_exponents(c.halves[h].view(), c.parts[h], shift.as<float>(), labels.as<std::int64_t>(), c.sums[h].as<float>(),
                  c.sums[h].as<float>() + kRows, nullptr);
  }
  std::vector<float> sums = c.sums[0].read<float>();
  const std::vector<float> others = c.sums[1].read<float>();
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += others[i];
  const Memory reduced(sums), losses(4 * kRows), total(std::vector<double>{0.5});
  row_losses(kRows, reduced.as<float>(), reduced.as<float>() + kRows, losses.as<float>(), nullptr);
  add_sum(kRows, losses.as<float>(), total.as<double>(), nullptr);

  const auto known = columns_of(c.logits.reference(), 0, vocabulary);
  std::vector<double> want(kRows), gradient(kRows * vocabulary);
  reference::cross_entropy<double>(known, c.labels.data(), want.data());
  const std::vector<float> got = losses.read<float>();
  double sum = 0.5;
  for (std::int64_t r = 0; r < kRows; ++r) {
    EXPECT_NEAR(got[r], want[r], 2e-6 * want[r]);
    sum += got[r];
  }
  EXPECT_NEAR(total.read<double>()[0], sum, 1e-12);

  reference::cross_entropy_gradient<double>(known, c.labels.data(), kScale,
                                            kernels::matrix(gradient.data(), kRows, vocabulary));
  for (int h = 0; h < 2; ++h) {
    cross_entropy_gradient(c.halves[h].view(), c.parts[h], reduced.as<float>(), labels.as<std::int64_t>(), kScale,
                           nullptr, nullptr);
    const std::vector<double> x = c.halves[h].read();
    std::vector<double> of_half(x.size());
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t i = 0; i < columns; ++i) {
        const std::int64_t token = h * columns + i;
        if (token < vocabulary) of_half[r * columns + i] = gradient[r * vocabulary + token];
      }
    }
    EXPECT_LT(relative_error(x, of_half), kFloatError + 2 * rounding_of(type)) << name_of(type) << " " << vocabulary;
  }
}

TEST_F(CrossEntropy, PartsOfAVocabularyGiveTheWhole) {
  for (const Type type : kTypes) {
    expect_reference(type, 13, 7);
    expect_reference(type, 1210, 640);
    expect_reference(type, 4000, 2048);
  }
}

TEST_F(CrossEntropy, APartWithoutTokensIsSilent) {
  const Operand logits(Type::fp32, kRows, 8, 0, 1);
  const Memory maxima(4 * kRows);
  row_maxima(logits.view(), {16, 10}, maxima.as<float>(), nullptr);
  for (const float x : maxima.read<float>()) EXPECT_EQ(x, -INFINITY);
}

}  // namespace
}  // namespace orrery::kernels::cuda
