#include "kernels/cuda/embedding.h"

#include "kernels/reference/embedding.h"
#include "tests/kernels/cuda/device.h"

namespace orrery::kernels::cuda {
namespace {

using Embedding = OnDevice;

// Tokens [first, first + vocabulary) lie in the table; some of those drawn do not, some come many times.
struct EmbeddingCase {
  EmbeddingCase(Type of_table, Type type, std::int64_t rows, std::int64_t columns, std::int64_t vocabulary,
                std::int64_t first)
      : first_token(first),
        table(of_table, vocabulary, columns, 0, 1),
        y(type, rows, columns, 8, 2),
        workspace(embed_gradient_workspace(rows, vocabulary)) {
    for (std::int64_t r = 0; r < rows; ++r) tokens.push_back(r % 3 == 0 ? first + 1 : r * r % (2 * vocabulary));
  }
  auto chosen() const {
    return [this](std::int64_t r) { return tokens[r]; };
  }

  std::int64_t first_token;
  Operand table, y;
  Memory workspace;
  std::vector<std::int64_t> tokens;
};

TEST_F(Embedding, MatchesItsReference) {
  for (const Type of_table : kTypes) {
    for (const Type type : kTypes) {
      for (const std::int64_t columns : {5, 48, 2056}) {
        SCOPED_TRACE(name_of(of_table) + " " + name_of(type) + " " + std::to_string(columns));
        EmbeddingCase c(of_table, type, 150, columns, 40, 20);
        const Memory tokens(c.tokens);
        embed_gradient(tokens.as<std::int64_t>(), c.first_token, c.y.view(), c.table.view(), c.workspace.workspace(),
                       nullptr);
        reference::choose_rows_gradient<double>(c.chosen(), c.first_token, c.y.reference(), c.table.reference());
        EXPECT_LT(c.table.error(), error_of(of_table));
        c.table.doubles = c.table.read();
        for (std::int64_t r = 0; r < c.y.rows; ++r) std::fill_n(c.y.reference().row(r), columns, 0.0);
        embed(tokens.as<std::int64_t>(), c.first_token, c.table.view(), c.y.view(), nullptr);
        reference::choose_rows<double>(c.chosen(), c.first_token, c.table.reference(), c.y.reference());
        EXPECT_LT(c.y.error(), error_of(type));
      }
    }
  }
}

TEST_F(Embedding, PositionsMatchTheirReference) {
  const Positions positions = {6, 2};
  const auto chosen = [&](std::int64_t r) { return positions.first + r % positions.rows_per_sample; };
  for (const Type type : kTypes) {
    for (const std::int64_t columns : {5, 48}) {
      for (const std::int64_t rows : {4, 18}) {
        Operand table(Type::fp32, 10, columns, 0, 1), x(type, rows, columns, 8, 2);
        positions_gradient(x.view(), positions, table.view(), nullptr);
        reference::choose_rows_gradient<double>(chosen, 0, x.reference(), table.reference());
        EXPECT_LT(table.error(), kFloatError);
        table.doubles = table.read();
        add_positions(x.view(), table.view(), positions, x.view(), nullptr);  // in place
        reference::choose_rows<double>(chosen, 0, table.reference(), x.reference());
        EXPECT_LT(x.error(), error_of(type));
      }
    }
  }
}

}  // namespace
}  // namespace orrery::kernels::cuda
