#include "sim/calibrate/kineto_operators.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace orrery {
namespace {

using nlohmann::json;

json event(const char* category, const char* name, int thread, double ts, double dur, json args) {
  return {{"ph", "X"}, {"cat", category}, {"name", name}, {"pid", 1},      {"tid", thread},
          {"ts", ts},  {"dur", dur},      {"args", args}, {"note", "none"}};
}

// Microseconds since 1970 have more digits as nanoseconds than a double.
constexpr double kNow = 1.7e15;

// A product in forward, whose kernel names the operator; one in backward, inside a node of autograd, whose kernel's id
// is that of the launch; a kernel launched under an annotation alone; and one that nothing launched.
json trace() {
  return {event("cpu_op", "aten::mm", 1, kNow, 50, {{"External id", 4}}),
          event("kernel", "forward", 7, kNow + 60, 9, {{"External id", 4}, {"correlation", 100}}),
          event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 2, kNow + 100, 50, {{"External id", 5}}),
          event("cpu_op", "MmBackward0", 2, kNow + 101, 48, {{"External id", 6}, {"Input Dims", {{2048, 200}}}}),
          event("cpu_op", "aten::mm", 2, kNow + 110, 20, {{"External id", 7}}),
          event("cuda_runtime", "cudaLaunchKernel", 2, kNow + 115, 5, {{"External id", 101}, {"correlation", 101}}),
          event("kernel", "backward", 7, kNow + 200, 9, {{"External id", 101}, {"correlation", 101}}),
          event("user_annotation", "dispatch", 1, kNow + 300, 50, {{"External id", 8}}),
          event("cuda_runtime", "cudaLaunchKernel", 1, kNow + 315, 5, {{"External id", 102}, {"correlation", 102}}),
          event("kernel", "exchange", 7, kNow + 400, 9, {{"External id", 102}, {"correlation", 102}}),
          event("kernel", "stray", 7, kNow + 500, 9, {{"External id", 103}, {"correlation", 103}})};
}

TEST(KinetoOperators, AreFoundByIdOrByLaunchAndThread) {
  const json file = trace();
  const std::vector<JsonValue> events = JsonValue(file, "trace.json").items();
  const KinetoOperators operators(events);
  EXPECT_EQ(operators.operators(), (std::vector<std::size_t>{0, 2, 3, 4}));
  EXPECT_EQ(operators.of_kernel(1), std::optional<std::size_t>(0));
  EXPECT_EQ(operators.of_kernel(6), std::optional<std::size_t>(4));
  EXPECT_EQ(operators.of_kernel(9), std::optional<std::size_t>(7));
  EXPECT_EQ(operators.of_kernel(10), std::nullopt);
}

TEST(KinetoOperators, AreInBackwardOnAutogradsThread) {
  const json file = trace();
  const std::vector<JsonValue> events = JsonValue(file, "trace.json").items();
  const KinetoOperators operators(events);
  EXPECT_FALSE(operators.place_of(0).backward);
  EXPECT_TRUE(operators.place_of(0).gradient.empty());
  EXPECT_TRUE(operators.place_of(4).backward);
  EXPECT_EQ(operators.place_of(4).gradient, (std::vector<std::int64_t>{2048, 200}));
}

}  // namespace
}  // namespace orrery
