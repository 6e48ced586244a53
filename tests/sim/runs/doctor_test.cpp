#include "sim/runs/doctor.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace orrery {
namespace {

constexpr Bytes kPlenty = Bytes{1} << 40;

MachineFacts whole() {
  MachineFacts f;
  f.rank_program = "/usr/lib/orrery/orrery-rank";
  f.rank_version = "orrery-rank 0.2.0";
  f.cuda_program = "/usr/lib/orrery/orrery-rank-cuda";
  f.cuda_said = "nccl: 2.28.9";
  f.cuda_works = true;
  f.peers_plugin = "/usr/lib/orrery/orrery-peers.so";
  f.viewer = "/usr/bin/orrery-view";
  f.mpirun = "/usr/bin/mpirun";
  f.mpi_version = "mpirun (Open MPI) 4.1.4";
  f.cores = 8;
  f.room = {65536, kPlenty, kPlenty, kPlenty};
  f.temporary = "/tmp";
  f.temporary_writable = true;
  f.gpus = 2;
  f.nccl = "/usr/lib/x86_64-linux-gnu/libnccl.so.2";
  f.display = ":0";
  return f;
}

Finding finding(const MachineFacts& facts, const std::string& name) {
  const std::vector<Finding> all = diagnose(facts);
  const auto found = std::ranges::find(all, name, &Finding::name);
  return found == all.end() ? Finding{} : *found;
}

// A change to a whole machine, and the finding that it makes.
struct Want {
  const char* name;
  Health health;
  const char* mend;
  void (*take)(MachineFacts&);
};
constexpr Want kWants[] = {
    {"MPI", Health::lacking, "openmpi-bin", [](MachineFacts& f) { f.mpirun = ""; }},
    {"MPI", Health::lacking, "Open MPI", [](MachineFacts& f) { f.mpi_version = "HYDRA build details:"; }},
    {"CPU ranks", Health::lacking, "libopenmpi-dev", [](MachineFacts& f) { f.rank_program = ""; }},
    {"CPU ranks", Health::lacking, "libopenblas0",
     [](MachineFacts& f) { f.rank_version = "error while loading shared libraries: libopenblas.so.0"; }},
    {"search over MPI", Health::lacking, "libopenmpi-dev", [](MachineFacts& f) { f.peers_plugin = ""; }},
    {"open files", Health::lacking, "ulimit -n", [](MachineFacts& f) { f.room.files = 40; }},
    {"addresses", Health::lacking, "ulimit -v", [](MachineFacts& f) { f.room.addresses = 100 << 20; }},
    {"/dev/shm", Health::lacking, "--shm-size", [](MachineFacts& f) { f.room.shared = 1 << 20; }},
    {"/dev/shm", Health::lacking, "mount -t tmpfs", [](MachineFacts& f) { f.shared_folder = false; }},
    {"temporary files", Health::lacking, "TMPDIR", [](MachineFacts& f) { f.room.disk = 0; }},
    {"temporary files", Health::lacking, "make that folder", [](MachineFacts& f) { f.temporary_writable = false; }},
    {"CUDA", Health::absent, "--gpus all", [](MachineFacts& f) { f.gpus = 0; }},
    {"CUDA", Health::lacking, "orrery-cuda", [](MachineFacts& f) { f.cuda_program = ""; }},
    {"CUDA", Health::lacking, "driver", [](MachineFacts& f) { f.cuda_works = false; }},
    {"CUDA", Health::lacking, "that library",
     [](MachineFacts& f) {
       f.cuda_works = false;
       f.cuda_said = "/usr/lib/orrery/orrery-rank-cuda: error while loading shared libraries: libcublasLt.so.13: none";
     }},
    {"NCCL", Health::lacking, "libnccl2", [](MachineFacts& f) { f.nccl = "", f.cuda_works = false; }},
    {"NCCL", Health::absent, "libnccl2", [](MachineFacts& f) { f.nccl = "", f.gpus = 0; }},
    {"viewer", Health::absent, "orrery-viewer", [](MachineFacts& f) { f.viewer = ""; }},
    {"display", Health::absent, "--screenshot", [](MachineFacts& f) { f.display = ""; }},
};

TEST(Doctor, AWholeMachineLacksNothing) {
  for (const Finding& f : diagnose(whole())) {
    EXPECT_EQ(f.health, Health::good) << f.name << ": " << f.found;
    EXPECT_TRUE(f.mend.empty()) << f.name;
    EXPECT_FALSE(f.needed_for.empty()) << f.name;
  }
}

TEST(Doctor, NamesWhatIsMissingAndHowToMendIt) {
  for (const Want& want : kWants) {
    MachineFacts facts = whole();
    want.take(facts);
    const Finding f = finding(facts, want.name);
    EXPECT_EQ(f.health, want.health) << want.name << ": " << f.found;
    EXPECT_NE(f.mend.find(want.mend), std::string::npos) << want.name << ": " << f.mend;
  }
}

TEST(Doctor, ChecksTheSameThingsEverywhere) {
  const std::vector<Finding> some = diagnose(whole()), none = diagnose({});
  ASSERT_EQ(some.size(), none.size());
  for (std::size_t i = 0; i < some.size(); ++i) EXPECT_EQ(some[i].name, none[i].name);
}

// A limit is judged by the ranks that a run of this machine may have: 64 files do for 8 ranks and not for 32.
TEST(Doctor, JudgesLimitsByTheRanksOfThisMachine) {
  MachineFacts facts = whole();
  facts.room.files = 64;
  EXPECT_EQ(finding(facts, "open files").health, Health::good);
  facts.cores = 32;
  EXPECT_EQ(finding(facts, "open files").health, Health::lacking);
  EXPECT_NE(finding(facts, "open files").found.find("8 ranks at most"), std::string::npos);
}

}  // namespace
}  // namespace orrery
