#include "sim/launch/framework.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/reference.h"

namespace orrery {
namespace {

const std::vector<const Framework*> kAll = {&megatron(),   &nemo(),       &deepspeed(),
                                            &accelerate(), &torchtitan(), &nanotron()};

TEST(Framework, EveryRowsKeyIsOneOfASpec) {
  std::set<std::string> known = {"sequence",
                                 "gpus",
                                 "software",
                                 "",
                                 "strategy.offload.optimizer",
                                 "strategy.offload.activations",
                                 "model.sliding_window"};
  for (const KeyReference& key : spec_reference()) known.insert(key.key);
  for (const Framework* f : kAll) {
    for (const OptionRow& row : f->rows()) {
      const bool counted = row.key.starts_with("launch.");
      EXPECT_TRUE(counted || known.count(std::string(row.key)) == 1) << f->name << " " << row.option << " " << row.key;
    }
  }
}

TEST(Framework, FilesAreToldByTheirOptions) {
  const std::pair<const char*, const char*> files[] = {{"{\"zero_optimization\": {\"stage\": 1}}", "deepspeed"},
                                                       {"compute_environment: X\n", "fsdp"},
                                                       {"parallelism:\n  dp: 2\n  pp_engine: 1f1b\n", "nanotron"},
                                                       {"training:\n  seq_len: 2\n", "torchtitan"},
                                                       {"trainer:\n  devices: 2\n", "nemo"},
                                                       {"num_layers: 2\n", "megatron"}};
  for (const auto& [text, name] : files) {
    const Framework* found = framework_of(read_tree(text, "x"));
    ASSERT_NE(found, nullptr) << text;
    EXPECT_EQ(found->name, name);
  }
  EXPECT_EQ(framework_of(read_tree("a: 1\n", "x")), nullptr);
}

TEST(Framework, ExportNamesWhatItKnows) {
  EXPECT_EQ(find_framework("fsdp").about, "Accelerate");
  EXPECT_THROW(find_framework("megatrom"), Error);
}

}  // namespace
}  // namespace orrery
