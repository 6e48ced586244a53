#include "sim/summary/tie.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

KernelRecord kernel(std::int64_t begin, std::uint32_t correlation, std::uint32_t external) {
  KernelRecord k;
  k.begin = begin;
  k.end = begin + 10;
  k.launch = correlation;
  k.operation = external;
  return k;
}

TEST(Tie, ByTheOperatorsIdBeforeTheLaunch) {
  TraceRecords r;
  r.kernels = {kernel(100, 50, 7)};
  r.operators = {{0, 90, 7, 1, 70, false}, {10, 20, 8, 1, 80, false}};
  r.launches = {{12, 15, 50, 1}};
  tie(r);
  EXPECT_EQ(r.kernels[0].tie, Tie::id);
  EXPECT_EQ(r.kernels[0].operation, 70U);
  EXPECT_EQ(r.kernels[0].launch, 85U);  // from the end of the launch
}

TEST(Tie, AnIdThatRepeatsTheCorrelationIsNoOperators) {
  TraceRecords r;
  r.kernels = {kernel(100, 7, 7), kernel(200, 9, 9), kernel(300, 11, 11), kernel(400, 12, 12)};
  // Thread 1: an annotation around an operator around an operator; thread 2 has the operator numbered 7.
  r.operators = {
      {0, 90, 7, 2, 70, false}, {10, 20, 8, 1, 80, false}, {5, 60, 6, 1, 60, false}, {0, 80, 5, 1, 50, true}};
  r.launches = {{12, 15, 7, 1}, {40, 42, 9, 1}, {70, 75, 11, 1}, {85, 86, 12, 1}};
  tie(r);
  EXPECT_EQ(r.kernels[0].operation, 80U);
  EXPECT_EQ(r.kernels[0].tie, Tie::launch);
  EXPECT_EQ(r.kernels[1].operation, 60U);
  EXPECT_EQ(r.kernels[2].operation, 50U);
  EXPECT_EQ(r.kernels[2].tie, Tie::annotation);
  EXPECT_EQ(r.kernels[3].tie, Tie::none);
  EXPECT_EQ(r.kernels[3].operation, kNoName);
}

// Kernel 9 has no operator, and its id is that of one that ran elsewhere; the id of kernel 6 is its operator's, whose
// launch was not recorded.
TEST(Tie, AnIdThatRepeatsTheCorrelationIsNoOperatorsAmongOthersThatAre) {
  TraceRecords r;
  r.kernels = {kernel(100, 5, 7), kernel(200, 9, 9), kernel(300, 6, 6), kernel(400, 4, 7), kernel(500, 3, 7)};
  r.operators = {{0, 20, 7, 1, 70, false}, {30, 60, 6, 1, 60, false}, {0, 90, 9, 2, 90, false}};
  r.launches = {{5, 8, 5, 1}, {40, 42, 9, 1}};
  tie(r);
  EXPECT_EQ(r.kernels[0].operation, 70U);
  EXPECT_EQ(r.kernels[1].operation, 60U);  // which ran on the thread of the launch
  EXPECT_EQ(r.kernels[1].tie, Tie::launch);
  EXPECT_EQ(r.kernels[2].operation, 60U);
  EXPECT_EQ(r.kernels[2].tie, Tie::id);
}

// The launches are recorded on a thread on which no operator, or only an annotation, was running. One kernel's id is
// its correlation id by chance, another's repeats it: operator 5 was not running then.
TEST(Tie, AnIdThatIsTheCorrelationByChanceNamesItsOperator) {
  for (const bool annotated : {false, true}) {
    TraceRecords r;
    for (std::uint32_t i = 1; i <= 6; ++i) {
      r.kernels.push_back(kernel(100 * i, i, i == 4 || i == 5 ? i : 10 + i));
      r.operators.push_back({10 * i, 10 * i + 8, i == 4 ? i : 10 + i, 2, 70 + i, false});
      r.launches.push_back({10 * i + 2, 10 * i + 5, i, 1});
    }
    r.operators.push_back({80, 90, 5, 2, 90, false});
    if (annotated) r.operators.push_back({0, 95, 99, 1, 95, true});
    tie(r);
    for (std::uint32_t i = 1; i <= 6; ++i) {
      if (i == 5) continue;
      EXPECT_EQ(r.kernels[i - 1].tie, Tie::id) << i;
      EXPECT_EQ(r.kernels[i - 1].operation, 70 + i);
    }
    EXPECT_EQ(r.kernels[4].tie, annotated ? Tie::annotation : Tie::none);
    EXPECT_EQ(r.kernels[4].operation, annotated ? 95U : kNoName);
  }
}

TEST(Tie, KernelsWithoutALaunchStayUntied) {
  TraceRecords r;
  r.kernels = {kernel(200, 0, 0), kernel(100, 3, 0)};
  tie(r);
  EXPECT_EQ(r.kernels[0].begin, 100);
  for (const KernelRecord& k : r.kernels) {
    EXPECT_EQ(k.launch, kNotKnown);
    EXPECT_EQ(k.operation, kNoName);
    EXPECT_EQ(k.tie, Tie::none);
  }
}

}  // namespace
}  // namespace orrery
