#include <gtest/gtest.h>

#include "models/base/error.h"
#include "sim/cli/commands.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

const std::string kExported = std::string(ORRERY_SOURCE_DIR) + "/tests/program/specs/small.yaml";

TEST(ExportCommand, EveryFrameworkGetsItsFile) {
  const std::pair<const char*, const char*> files[] = {{"megatron", "--tensor-model-parallel-size 2"},
                                                       {"deepspeed", "\"train_batch_size\": 16"},
                                                       {"torchtitan", "tensor_parallel_degree = 2"},
                                                       {"nanotron", "  dp: 2"},
                                                       {"fsdp", "num_processes: 8"}};
  for (const auto& [to, part] : files) {
    const Outcome outcome = export_command({kExported, to, {}, ""});
    EXPECT_NE(outcome.text.find(part), std::string::npos) << outcome.text;
  }
}

TEST(ExportCommand, WhatCannotBeSaidIsNamed) {
  const Outcome outcome = export_command({kExported, "deepspeed", {}, ""});
  EXPECT_NE(outcome.log.find("not said: strategy.pipeline: orrery knows no option of DeepSpeed for it"),
            std::string::npos)
      << outcome.log;
  EXPECT_THROW(export_command({kExported, "megatrom", {}, ""}), Error);
}

}  // namespace
}  // namespace orrery
