#include "sim/predict/neighbours.h"

#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "sim/report/link_load.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

// A job of 16 nodes of a cluster of 64, in leaves of 8 nodes with an eighth of their NICs' rate, and another job.
std::string job_text(const std::string& placement, const std::string& neighbours = "", int nodes = 16) {
  return fmt::format(
      "model: {{name: t, layers: 8, hidden: 2048, heads: 16, feed_forward: 8192, vocab: 4096}}\n"
      "sequence: 256\ngpus: {}\n"
      "cluster: {{node: dgx-h100, nodes: 64, network: {{leaf: {{nodes: 8, uplinks: 1}}, placement: {}{}}}}}\n"
      "strategy: {{tensor: 8, data: {}, global_batch: {}}}\n",
      8 * nodes, placement, neighbours, nodes, nodes);
}

class Cluster64 {
 public:
  Cluster64() { save("b.yaml", job_text("contiguous")); }

  void save(const std::string& name, const std::string& text) { std::ofstream(folder_.path(name)) << text; }
  Spec beside(const std::string& placement, const std::string& others) {
    save("a.yaml", job_text(placement, ", neighbours: {jobs: [" + others + "]}"));
    return load_spec(folder_.path("a.yaml"));
  }

 private:
  test::TemporaryFolder folder_;
};

std::vector<NeighbourJob> jobs_of(const Spec& spec) { return neighbours_of(spec, profile_for(spec, "")); }

TEST(Neighbours, OnLeavesOfTheirOwnSlowNobody) {
  Cluster64 cluster;
  const std::vector<NeighbourJob> jobs = jobs_of(cluster.beside("contiguous", "b.yaml"));
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[1].nodes.front(), 16);
  for (const NeighbourJob& j : jobs) EXPECT_EQ(j.step, j.alone);
  EXPECT_GT(jobs[0].use, 0);
}

// The load of uplinks is a share of the rate that the others leave, with which the job was predicted.
TEST(Neighbours, LeaveLinksOfWhatThePredictionKnows) {
  Cluster64 cluster;
  cluster.save("b.yaml", job_text("scattered"));
  const auto uplinks = [](const Prediction& p) {
    for (const LinkLoad& load : link_loads(p.plan, p.costs.timing, p.trace, p.cluster)) {
      if (load.name == "uplinks of 64 GPUs") return load;
    }
    return LinkLoad{};
  };
  const Spec spec = cluster.beside("scattered", "b.yaml");
  Spec alone = spec;
  alone.cluster.network->jobs.clear();
  const Prediction beside = predict(spec);
  EXPECT_GT(beside.cluster.network->load, 0);
  const LinkLoad all = uplinks(predict(alone)), left = uplinks(beside);
  EXPECT_GT(left.mean, 0);
  EXPECT_NEAR(left.capacity, all.capacity * (1 - beside.cluster.network->load), 1e-9 * all.capacity);
}

// Two jobs that are alike on the same leaves slow each other alike, and are no slower than with half of the uplinks.
TEST(Neighbours, OnTheSameLeavesShareTheUplinks) {
  Cluster64 cluster;
  cluster.save("b.yaml", job_text("scattered"));
  const Spec spec = cluster.beside("scattered", "b.yaml");
  const std::vector<NeighbourJob> jobs = jobs_of(spec);
  EXPECT_GT(jobs[0].step, 1.05 * jobs[0].alone);
  EXPECT_NEAR(jobs[1].step, jobs[0].step, 0.01 * jobs[0].step);
  Spec halves = jobs[0].spec;
  halves.cluster.network->load = 0.5;
  EXPECT_LE(jobs[0].step, predict(halves).report.step_time_s * (1 + 1e-9));
  const Report report = predict(spec).report;
  EXPECT_NE(report.remarks.back().find("b.yaml takes"), std::string::npos);
}

// A job that hardly sends costs hardly anything, also beside one that fills the uplinks.
TEST(Neighbours, TakeNoMoreThanTheyUse) {
  Cluster64 cluster;
  cluster.save("b.yaml", job_text("scattered"));
  cluster.save("light.yaml", job_text("scattered", "", 2));
  const std::vector<NeighbourJob> two = jobs_of(cluster.beside("scattered", "b.yaml"));
  const std::vector<NeighbourJob> three = jobs_of(cluster.beside("scattered", "b.yaml, light.yaml"));
  EXPECT_LE(two[0].use + two[1].use, 1 + 1e-6);
  EXPECT_LE(three[0].step, 1.2 * two[0].step);
}

// Jobs below one part of the spine, each on leaves of its own, share no uplink.
TEST(Neighbours, OfOnePartOfTheSpineSlowNobody) {
  Cluster64 cluster;
  const Spec spec = cluster.beside("contiguous, spine: {leaves: 8, ratio: 1}", "b.yaml");
  for (const NeighbourJob& j : jobs_of(spec)) EXPECT_EQ(j.step, j.alone);
}

TEST(Neighbours, AreRefusedWhereTheClusterIsTooSmall) {
  Cluster64 cluster;
  cluster.save("b.yaml", job_text("contiguous", "", 56));
  try {
    predict(cluster.beside("contiguous", "b.yaml"));
    ADD_FAILURE() << "56 nodes were found among 48";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("b.yaml needs 56 nodes, 48 are left"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace orrery
