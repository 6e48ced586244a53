#include <gtest/gtest.h>

#include "sim/launch/settings.h"

namespace orrery {
namespace {

TEST(Shell, OptionsOfArraysAndStrings) {
  const Settings s = read_shell(
      "#!/bin/bash\nGPUS=${GPUS:-8}\nARGS=(\n  --tp 4 # four\n  --flag\n  --seq-len=2048\n)\nMORE=\"--lr 1e-4 --list 1 "
      "2\"\n"
      "torchrun --nproc_per_node $GPUS run.py \\\n  \"${ARGS[@]}\" \\\n  $MORE | tee log\n",
      "x.sh");
  EXPECT_EQ(s.find("nproc_per_node")->value, "8");
  EXPECT_EQ(s.find("tp")->from, "x.sh:4");
  EXPECT_EQ(s.find("flag")->value, "true");
  EXPECT_EQ(s.find("seq_len")->value, "2048");
  EXPECT_EQ(s.find("list")->value, "1 2");
}

TEST(Shell, SlurmsOptionsAndVariables) {
  const Settings s = read_shell(
      "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gpus-per-node 8\nsrun run --world $(($SLURM_NNODES*8))\n", "x.sh");
  EXPECT_EQ(s.find("nodes")->value, "4");
  EXPECT_EQ(s.find("gpus_per_node")->from, "x.sh:3");
  EXPECT_EQ(s.find("world")->value, "32");
}

TEST(Shell, AConfigurationThatTheScriptWrites) {
  const Settings s =
      read_shell("S=3\ncat <<EOT > c.json\n{\n  \"zero\": {\"stage\": $S}\n}\nEOT\nrun --c c.json\n", "x.sh");
  ASSERT_EQ(s.parts.size(), 1U);
  EXPECT_EQ(s.parts[0].find("zero.stage")->value, "3");
  EXPECT_EQ(s.parts[0].find("zero.stage")->from, "x.sh:4");
}

TEST(Shell, VariablesCountWhereTheArgumentsAreElsewhere) {
  const Settings s = read_shell("TP=2\nEXTRA=\"--recompute full\"\n. other.sh\n", "x.sh");
  EXPECT_TRUE(s.refers);
  EXPECT_EQ(s.find("recompute")->value, "full");
  EXPECT_EQ(s.variables.size(), 2U);
}

TEST(Shell, NothingIsExecuted) {
  const Settings s = read_shell("A=$(touch /tmp/never)\n`touch /tmp/never`\nrun --a $A --b `x y` --c $1\n", "x.sh");
  EXPECT_EQ(s.find("a")->value, "$(touch /tmp/never)");
  EXPECT_EQ(s.find("c")->value, "$1");
}

}  // namespace
}  // namespace orrery
