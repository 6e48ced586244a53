#include "viz/read/trace_passes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

using namespace orrery;

TEST(TracePasses, HaveAPhaseForEachMicroBatch) {
  TracePasses passes;
  Timeline t;
  EXPECT_EQ(passes.phase_of("0"), kNoPhase);
  passes.read(R"(["prefill 0 to 255", "prefill 256 to 511", "decode 1", "decode 1"])", t);
  EXPECT_EQ(t.phases, (std::vector<std::string>{"prefill", "decode"}));
  EXPECT_EQ(t.pass_of_batch,
            (std::vector<std::string>{"prefill 0 to 255", "prefill 256 to 511", "decode 1", "decode 1"}));
  EXPECT_EQ(passes.phase_of("1"), 0);
  EXPECT_EQ(passes.phase_of("3"), 1);
  for (const char* none : {"", "4", "-1", "x", "99999999999999999999"}) EXPECT_EQ(passes.phase_of(none), kNoPhase);
}

// The files of several ranks name the same passes.
TEST(TracePasses, OfTwoFilesAreThoseOfTheFirst) {
  TracePasses first, second;
  Timeline t;
  first.read(R"(["prefill", "decode 1"])", t);
  second.read(R"(["decode 1"])", t);
  EXPECT_EQ(t.pass_of_batch.size(), 2u);
  EXPECT_EQ(second.phase_of("0"), 1);
}

TEST(TracePasses, OfDamagedTextAreFew) {
  for (const char* text : {"", "[", "[1, 2]", R"(["prefill)", R"(["prefill" "decode"])", "{}"}) {
    TracePasses passes;
    Timeline t;
    passes.read(text, t);
    EXPECT_LE(t.phases.size(), 1u) << text;
  }
  std::string many = "[";
  for (int i = 0; i < 1000; ++i) many += fmt::format("\"p{}\", ", i);
  TracePasses passes;
  Timeline t;
  passes.read(many + "]", t);
  EXPECT_LE(t.phases.size(), 8u);
  EXPECT_EQ(passes.phase_of("999"), kNoPhase);
}
