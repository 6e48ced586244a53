#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"

namespace orrery {
namespace {

Spec spec_with(const std::string& checkpoint, const std::string& cluster = "") {
  return parse_spec("model: llama-3.2-1b\nsequence: 2048\ncluster: {node: dgx-h100, nodes: 2" + cluster +
                        "}\nstrategy: {global_batch: 16, checkpoint: " + checkpoint + "}\n",
                    "t.yaml");
}

std::string refusal(const std::string& checkpoint, const std::string& cluster = "") {
  try {
    spec_with(checkpoint, cluster);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(LoadCheckpoint, ReadsWhereAndHowOften) {
  const Spec local = spec_with("{every: 100}");
  EXPECT_EQ(local.strategy.checkpoint->every, 100);
  EXPECT_TRUE(local.strategy.checkpoint->asynchronous);
  EXPECT_FALSE(local.strategy.checkpoint->to_storage);
  const Spec shared = spec_with("{to: storage, asynchronous: false}", ", storage: {write_GBps: 100}");
  EXPECT_TRUE(shared.strategy.checkpoint->to_storage);
  EXPECT_FALSE(shared.strategy.checkpoint->asynchronous);
  EXPECT_FALSE(shared.cluster.storage_on_backend);
  const Spec backend = spec_with("{to: storage}", ", storage: {GBps: 100, read_GBps: 300, path: backend}");
  EXPECT_TRUE(backend.cluster.storage_on_backend);
  EXPECT_EQ(backend.cluster.storage->write_GBps, 100);
  EXPECT_EQ(backend.cluster.storage->read_GBps, 300);
}

TEST(LoadCheckpoint, RefusesWhatCannotBeWritten) {
  EXPECT_EQ(refusal("{to: storage}"),
            "t.yaml:4: strategy.checkpoint: to: storage needs cluster.storage: {write_GBps: ...}");
  EXPECT_NE(refusal("{every: 0}").find("0 is not a number of steps of at least 1"), std::string::npos);
  EXPECT_NE(refusal("{to: tape}").find("tape"), std::string::npos);
}

}  // namespace
}  // namespace orrery
