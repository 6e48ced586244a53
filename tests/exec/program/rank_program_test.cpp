#include "exec/program/rank_program.h"

#include <fstream>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/exec/jobs.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

std::vector<std::int64_t> first_sample(const Text& text, std::int64_t sequence) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(sequence));
  text.copy(0, sequence, {0, sequence}, 0, tokens.data());
  return tokens;
}

// The built-in text is repeated if a sample is longer than it.
TEST(RankProgram, TheBuiltInTextIsRepeated) {
  const Spec spec = test::spec_of(test::kTiny, "global_batch: 1", 16);
  const std::vector<std::int64_t> tokens = first_sample(text_of({}, spec, "abcde"), 16);
  for (std::size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(tokens[i], ("abcde"[i % 5]) % 64);
}

// A text given by the user is not repeated: it is refused if a sample is longer.
TEST(RankProgram, ATextOfTheUsersMustHoldASample) {
  const Spec spec = test::spec_of(test::kTiny, "global_batch: 1", 16);
  const test::TemporaryFolder folder;
  RankOptions options;
  options.text = folder.path() + "/text";
  std::ofstream(options.text) << "abcde";
  EXPECT_THROW(text_of(options, spec, "abcde"), Error);
}

}  // namespace
}  // namespace orrery
