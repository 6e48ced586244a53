#include <machine.cuh>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/fragments.cuh"
#include "kernels/reference/attention.h"
#include "tests/kernels/cuda/device.h"

// Properties that only the emulated GPU can show: kernels do not depend on the order of warps nor on when asynchronous
// copies happen, the lanes of a load touch no bank twice, and fragments lie where the manual's figures say.
namespace orrery::kernels::cuda {
namespace {

struct Emulated : testing::Test {
  void SetUp() override { emulated::findings() = {}; }
  void TearDown() override { emulated::order() = {}; }
};

struct Gradients {
  std::vector<double> out, dqkv;
};

// One head of 150 queries and keys of depth head_dim, forward and backward.
Gradients attend(std::int64_t head_dim) {
  const std::int64_t rows = 150;
  Operand qkv(Type::bf16, rows, 3 * head_dim, 0, 1), out(Type::bf16, rows, head_dim, 0, 2);
  Operand dout(Type::bf16, rows, head_dim, 0, 3), dqkv(Type::bf16, rows, 3 * head_dim, 0, 4);
  const auto head = [&](const Operand& x, std::int64_t at) { return heads_of(x.view(), 1, at, 1, head_dim); };
  const Memory lse(4 * rows), workspace(attention_gradient_workspace(head(qkv, 0), head(qkv, 1)));
  attention(head(qkv, 0), head(qkv, 1), head(qkv, 2), 0.25F, {}, head(out, 0), lse.as<float>(), nullptr);
  attention_gradient({head(qkv, 0), head(qkv, 1), head(qkv, 2), head(out, 0), lse.as<float>()}, head(dout, 0), 0.25F,
                     {}, head(dqkv, 0), head(dqkv, 1), head(dqkv, 2), workspace.workspace(), nullptr);
  return {out.read(), dqkv.read()};
}

TEST_F(Emulated, AttentionDoesNotDependOnTheOrderOfWarpsOrCopies) {
  for (const std::int64_t head_dim : {64, 128}) {
    emulated::order() = {};
    const Gradients want = attend(head_dim);
    for (const emulated::Order order : {emulated::Order{true, false}, {false, true}, {true, true}}) {
      emulated::order() = order;
      const Gradients got = attend(head_dim);
      EXPECT_EQ(got.out, want.out);
      EXPECT_EQ(got.dqkv, want.dqkv);
    }
  }
}

TEST_F(Emulated, AttentionLoadsMatricesWithoutBankConflicts) {
  for (const std::int64_t head_dim : {64, 96, 128, 256}) {
    attend(head_dim);
    EXPECT_GT(emulated::findings().matrix_loads, 0);
    EXPECT_EQ(emulated::findings().conflicts, 0) << head_dim;
  }
}

TEST(Fragments, PlacesOfATileAreDistinctAndAChunkOfEightRowsFillsAllBanks) {
  constexpr int kStride = 128, kRows = 16;
  std::vector<bool> taken(2 * kStride * kRows / 16);
  for (unsigned chunk = 0; chunk < kStride / kChunk; ++chunk) {
    for (unsigned first = 0; first < kRows; first += 8) {
      unsigned banks = 0;
      for (unsigned row = first; row < first + 8; ++row) {
        const std::uint32_t place = place_of<kStride>(row, chunk);
        ASSERT_LT(place / 16, taken.size());
        EXPECT_FALSE(taken[place / 16]);
        taken[place / 16] = true;
        banks |= 1U << (place / 16 % 8);
      }
      EXPECT_EQ(banks, 0xffU);
    }
  }
}

// PTX ISA 9.0, figures of m16n8k16: element i of a lane's four registers of a, two of b, four numbers of c. groupID is
// lane / 4 and threadID_in_group lane % 4.
struct Place {
  unsigned row, column;
};
Place a_place(unsigned lane, unsigned i) {
  return {lane / 4 + ((i / 2) % 2 == 1 ? 8 : 0), lane % 4 * 2 + i % 2 + (i >= 4 ? 8 : 0)};
}
Place b_place(unsigned lane, unsigned i) { return {lane % 4 * 2 + i % 2 + (i >= 2 ? 8 : 0), lane / 4}; }
Place c_place(unsigned lane, unsigned i) { return {lane / 4 + (i >= 2 ? 8 : 0), lane % 4 * 2 + i % 2}; }

void multiply_once(const float* a, const float* b, float* c) {
  const unsigned lane = threadIdx.x;
  std::uint32_t of_a[4], of_b[2];
  const auto at_a = [&](unsigned i) { return a[a_place(lane, i).row * 16 + a_place(lane, i).column]; };
  const auto at_b = [&](unsigned i) { return b[b_place(lane, i).row * 8 + b_place(lane, i).column]; };
  for (unsigned i = 0; i < 4; ++i) of_a[i] = pack<Bf16Bits>(at_a(2 * i), at_a(2 * i + 1));
  for (unsigned i = 0; i < 2; ++i) of_b[i] = pack<Bf16Bits>(at_b(2 * i), at_b(2 * i + 1));
  float sums[4] = {};
  multiply_add<Bf16Bits>(sums, of_a, of_b[0], of_b[1]);
  for (unsigned i = 0; i < 4; ++i) {
    EXPECT_EQ(result_row(static_cast<int>(i)), static_cast<int>(c_place(lane, i).row));
    EXPECT_EQ(result_column(static_cast<int>(i)), static_cast<int>(c_place(lane, i).column));
    c[c_place(lane, i).row * 8 + c_place(lane, i).column] = sums[i];
  }
}

TEST(Fragments, AMatrixInstructionMultipliesWhatTheManualsFiguresPlace) {
  std::vector<float> a(16 * 16), b(16 * 8), c(16 * 8);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 7 % 31) - 15;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 5 % 29) - 14;
  launch("multiply_once", multiply_once, dim3(1), 32, 0, nullptr, a.data(), b.data(), c.data());
  for (std::size_t m = 0; m < 16; ++m) {
    for (std::size_t n = 0; n < 8; ++n) {
      float want = 0;
      for (std::size_t k = 0; k < 16; ++k) want += a[m * 16 + k] * b[k * 8 + n];
      EXPECT_EQ(c[m * 8 + n], want);
    }
  }
}

}  // namespace
}  // namespace orrery::kernels::cuda
