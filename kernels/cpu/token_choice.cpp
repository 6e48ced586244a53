#include "kernels/cpu/token_choice.h"

#include <bit>
#include <cmath>
#include <limits>

namespace orrery::kernels {
namespace {

constexpr int kTokenBits = 31;
constexpr std::uint64_t kLastToken = (std::uint64_t{1} << kTokenBits) - 1;
constexpr std::uint32_t kSign = 0x80000000U;

}  // namespace

// The upper 32 of the key's 63 bits are those of the logit, changed so that their order as an integer is that of the
// numbers: the sign is inverted, and of negative numbers all other bits too. A finite logit's bits never begin with
// eleven ones, so the double is finite.
double token_key(float logit, std::int64_t token) {
  const float finite = std::isnan(logit) ? -std::numeric_limits<float>::infinity() : logit;
  const auto bits = std::bit_cast<std::uint32_t>(finite);
  const std::uint64_t ordered = (bits & kSign) != 0 ? ~bits : bits | kSign;
  return std::bit_cast<double>(ordered << kTokenBits | (kLastToken - static_cast<std::uint64_t>(token)));
}

std::int64_t token_of(double key) {
  return static_cast<std::int64_t>(kLastToken - (std::bit_cast<std::uint64_t>(key) & kLastToken));
}

void best_tokens(Matrix<const float> logits, VocabularyPart part, double* keys) {
  const std::int64_t tokens = part.tokens_of(logits.columns);
  for (std::int64_t r = 0; r < logits.rows; ++r) {
    const float* row = logits.row(r);
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < tokens; ++i) best = row[i] > row[best] ? i : best;
    keys[r] = tokens > 0 ? token_key(row[best], part.first + best) : 0;
  }
}

}  // namespace orrery::kernels
