#include "kernels/cpu/embedding.h"

#include <gtest/gtest.h>

#include "kernels/reference/embedding.h"
#include "tests/kernels/operand.h"

namespace orrery::kernels {
namespace {

constexpr std::int64_t kTableRows = 12, kColumns = 5;
const std::vector<std::int64_t> kTokens = {3, 11, 3, 0, 7, 3, 4, 5, 6};
const auto kTokenRows = static_cast<std::int64_t>(kTokens.size());

TEST(Embedding, MatchesItsReference) {
  const Operand table(kTableRows, kColumns, 2, 1), dy(kTokenRows, kColumns, 1, 2);
  Operand y(kTokenRows, kColumns, 1, 3), dtable(kTableRows, kColumns, 2, 4);
  const auto token = [](std::int64_t r) { return kTokens[r]; };
  embed(kTokens.data(), 0, table.view, y.view);
  for (std::int64_t r = 0; r < kTokenRows; ++r) std::fill_n(y.reference.row(r), kColumns, 0.0);
  reference::choose_rows<double>(token, 0, table.reference, y.reference);
  EXPECT_LT(y.error(), kFloatError);
  embed_gradient(kTokens.data(), 0, dy.view, dtable.view);
  reference::choose_rows_gradient<double>(token, 0, dy.reference, dtable.reference);
  EXPECT_LT(dtable.error(), kFloatError);
}

TEST(Embedding, PositionsMatchTheirReference) {
  const Operand table(6, kColumns, 2, 1), dy(kTokenRows, kColumns, 1, 2);
  Operand x(kTokenRows, kColumns, 1, 3), dtable(6, kColumns, 2, 4);
  const Positions positions = {3, 2};
  const auto position = [](std::int64_t r) { return 2 + r % 3; };
  add_positions(x.view, table.view, positions, x.view);
  reference::choose_rows<double>(position, 0, table.reference, x.reference);
  EXPECT_LT(x.error(), kFloatError);
  positions_gradient(dy.view, positions, dtable.view);
  reference::choose_rows_gradient<double>(position, 0, dy.reference, dtable.reference);
  EXPECT_LT(dtable.error(), kFloatError);
}

TEST(Embedding, ReferenceGradientIsTheDerivative) {
  const std::vector<double> table = wide(random_floats(kTableRows * kColumns, 1));
  const std::vector<double> dy = wide(random_floats(kTokenRows * kColumns, 2));
  const auto token = [](std::int64_t r) { return kTokens[r]; };
  std::vector<double> dtable(table.size());
  reference::choose_rows_gradient<double>(token, 0, seen(dy, kColumns), seen(dtable, kColumns));
  const auto forward = [&](const std::vector<double>& t) {
    std::vector<double> y(dy.size());
    reference::choose_rows<double>(token, 0, seen(t, kColumns), seen(y, kColumns));
    return y;
  };
  EXPECT_LT(relative_error(dtable, finite_differences(table, dy, forward)), kDifferenceError);
}

TEST(Embedding, PartsOfTheVocabularySumToTheWhole) {
  const Operand table(kTableRows, kColumns, 0, 1), dy(kTokenRows, kColumns, 0, 2);
  Operand whole(kTokenRows, kColumns, 0, 3), dwhole(kTableRows, kColumns, 0, 4), dparts(kTableRows, kColumns, 0, 4);
  embed(kTokens.data(), 0, table.view, whole.view);
  embed_gradient(kTokens.data(), 0, dy.view, dwhole.view);
  for (const std::int64_t ranks : {2, 4}) {
    const std::int64_t rows = kTableRows / ranks;
    std::vector<float> total(kTokenRows * kColumns);
    Operand dtotal(kTableRows, kColumns, 0, 4);
    for (std::int64_t first = 0; first < kTableRows; first += rows) {
      Operand part(kTokenRows, kColumns, 0, 5);
      embed(kTokens.data(), first, rows_of(table.view, first, rows), part.view);
      for (std::size_t i = 0; i < total.size(); ++i) total[i] += part.values[i];
      embed_gradient(kTokens.data(), first, dy.view, rows_of(dtotal.view, first, rows));
    }
    EXPECT_EQ(total, whole.values);
    EXPECT_EQ(dtotal.values, dwhole.values);
  }
}

}  // namespace
}  // namespace orrery::kernels
