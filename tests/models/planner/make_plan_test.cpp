// Properties of every plan, over randomly drawn strategies: buffers are alive when they are used and are given back,
// readers wait for writers, weights add up to the model's. The bytes of states are checked against the papers.
#include "models/planner/make_plan.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/load/load_spec.h"
#include "models/plan/check.h"
#include "models/plan/hash.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

using test::spec_of;

// Follows the lifetimes of buffers through a slot's tasks, in issue order.
class Lifetimes {
 public:
  Lifetimes(const Plan& plan, std::uint32_t slot, std::vector<std::string>& faults)
      : plan_(plan), slot_(slot), alive_(plan.buffers, false), faults_(faults) {
    for (std::uint32_t f = 0; f < plan.frames.size(); ++f) {
      const Block& block = plan.blocks[plan.frames[f].block];
      for (std::uint16_t s = 0; s < block.buffers.size(); ++s) {
        owner_.push_back({f, s});
        if (outlives_steps(block.role) && !block.buffers[s].lazy) alive_[id(f, s)] = true;
      }
    }
  }

  void run() {
    for (TaskId t = plan_.classes[slot_].begin; t < plan_.classes[slot_].end; ++t) visit(t);
    for (std::uint32_t b = 0; b < plan_.buffers; ++b) {
      const auto& [frame, slot] = owner_[b];
      const Block& block = plan_.blocks[plan_.frames[frame].block];
      if (alive_[b] && !outlives_steps(block.role))
        faults_.push_back(fmt::format("{}: {} is alive at the end", block.name, block.buffers[slot].name));
    }
  }

 private:
  std::uint32_t id(std::uint32_t frame, std::uint16_t slot) const { return plan_.frames[frame].first_buffer + slot; }

  void visit(TaskId t) {
    const Op& op = plan_.op_of(t);
    const auto buffer = [&](const Operand& o) { return id(frame_of(plan_, plan_.tasks[t].frame, o), o.slot); };
    for (const Operand& o : op.allocates) {
      if (alive_[buffer(o)] && o.scope != Scope::unit && o.scope != Scope::state) fail(t, o, "is taken twice");
      alive_[buffer(o)] = true;
    }
    for (const Operand& o : op.operands) {
      if (!alive_[buffer(o)] && bytes(t, o) > 0) fail(t, o, "is used while it is not alive");
    }
    for (const Operand& o : op.frees) {
      if (!alive_[buffer(o)]) fail(t, o, "is given back while it is not alive");
      alive_[buffer(o)] = false;
    }
  }

  const BlockBuffer& slot(TaskId t, const Operand& o) const {
    return plan_.blocks[plan_.frames[frame_of(plan_, plan_.tasks[t].frame, o)].block].buffers[o.slot];
  }
  Bytes bytes(TaskId t, const Operand& o) const { return slot(t, o).bytes; }
  void fail(TaskId t, const Operand& o, const char* what) {
    faults_.push_back(fmt::format("{}, '{}': {} {}", plan_.blocks[plan_.frames[plan_.tasks[t].frame].block].name,
                                  plan_.op_of(t).name, slot(t, o).name, what));
  }

  const Plan& plan_;
  std::uint32_t slot_;
  std::vector<bool> alive_;
  std::vector<std::string>& faults_;
  std::vector<std::pair<std::uint32_t, std::uint16_t>> owner_;  // by buffer
};

// For every task, the position that each lane of its slot has reached when it starts, by lane order and dependencies.
using Clock = std::array<TaskId, kLanes>;
std::vector<Clock> clocks(const Plan& plan, std::uint32_t slot) {
  const RankClass& s = plan.classes[slot];
  std::vector<Clock> result(s.end - s.begin, Clock{});
  std::array<TaskId, kLanes> last{};
  for (TaskId t = s.begin; t < s.end; ++t) {
    Clock& clock = result[t - s.begin];
    const auto join = [&](TaskId before) {
      const Clock& other = result[before - s.begin];
      for (std::size_t l = 0; l < kLanes; ++l) clock[l] = std::max(clock[l], other[l]);
      TaskId& own = clock[plan.tasks[before].lane % kLanes];
      own = std::max(own, before + 1);
    };
    const std::uint32_t lane = plan.tasks[t].lane % kLanes;
    if (last[lane] != 0) join(last[lane] - 1);
    for (const TaskId d : plan.dependencies_of(t)) join(d);
    last[lane] = t + 1;
  }
  return result;
}

// Finds tasks that use a buffer without waiting for its last writer, or that give one back without waiting for its
// users.
void find_races(const Plan& plan, std::uint32_t slot, std::vector<std::string>& faults) {
  const auto clock = clocks(plan, slot);
  const TaskId begin = plan.classes[slot].begin;
  std::map<std::uint32_t, TaskId> written;
  std::map<std::uint32_t, std::vector<TaskId>> users;
  const auto before = [&](TaskId a, TaskId b) { return clock[b - begin][plan.tasks[a].lane % kLanes] > a; };
  for (TaskId t = begin; t < plan.classes[slot].end; ++t) {
    const Op& op = plan.op_of(t);
    const auto buffer = [&](const Operand& o) {
      return plan.frames[frame_of(plan, plan.tasks[t].frame, o)].first_buffer + o.slot;
    };
    for (const Operand& o : op.operands) {
      if (o.scope == Scope::state) continue;  // states are followed block by block in the tests of data_parallel.cpp
      const auto w = written.find(buffer(o));
      if (w != written.end() && !before(w->second, t))
        faults.push_back(fmt::format("'{}' does not wait for '{}'", op.name, plan.op_of(w->second).name));
      users[buffer(o)].push_back(t);
    }
    for (const Operand& o : op.operands) {
      if (o.scope != Scope::state && o.access != Access::read) written[buffer(o)] = t;
    }
    for (const Operand& o : op.frees) {
      for (const TaskId user : users[buffer(o)]) {
        if (user != t && !before(user, t))
          faults.push_back(fmt::format("'{}' gives back what '{}' may use", op.name, plan.op_of(user).name));
      }
      users.erase(buffer(o));
      written.erase(buffer(o));
    }
  }
}

// Everything in a plan, as text, one piece a line: what a copied class of ranks has must be what it would have had if
// it had been laid out.
std::vector<std::string> pieces_of(const Plan& p) {
  std::vector<std::string> all;
  const auto add = [&](const char* what, auto&&... values) {
    std::string line = what;
    ((line += fmt::format(" {}", std::forward<decltype(values)>(values))), ...);
    all.push_back(line);
  };
  for (const RankClass& c : p.classes)
    add("class", c.name, c.stage, c.representative, c.multiplicity, c.begin, c.end, c.frame, c.versions, c.staleness,
        c.server, c.validation, c.validated, c.second);
  for (const Block& b : p.blocks) {
    add("block", b.name, static_cast<int>(b.role), fmt::join(b.forward, ","), fmt::join(b.backward, ","),
        fmt::join(b.release, ","), fmt::join(b.exchange, ","), b.input_gradients, b.fetches, b.parameters.size(),
        b.parameter_elements, b.frozen_units, b.runtime_sizes.size(), b.second);
    for (const BlockBuffer& s : b.buffers)
      add("buffer", s.name, s.bytes, static_cast<int>(s.category), s.lazy, s.runtime_size, static_cast<int>(s.home),
          s.contiguous);
  }
  for (const Frame& f : p.frames)
    add("frame", f.block, f.first_buffer, f.next, f.previous, f.beside, f.unit, f.state, f.weights, f.slot, f.layer,
        f.micro_batch, f.chunk, f.base, f.frozen_base);
  for (const Task& t : p.tasks) add("task", t.op, t.frame, t.lane, t.first_dependency, t.match, t.flags);
  add("dependencies", fmt::join(p.dependencies, ","));
  for (std::uint32_t m = 0; m < p.matches.size(); ++m) add("match", fmt::join(p.members_of(m), ","));
  add("buffers", p.buffers);
  add("kinds", fmt::join(p.kind_of_rank, ","));
  add("hash", plan_hash(p));  // and with it ops and groups
  return all;
}

// Classes of ranks that slow ranks alone tell apart are copied, which gives the plan in which each is laid out.
TEST(MakePlan, CopiedClassesAreWhatWouldBeLaidOut) {
  const char* const strategies[] = {
      "tensor: 2, pipeline: 2, data: 4, global_batch: 8",
      "tensor: 4, pipeline: 2, data: 2, virtual_stages: 2, global_batch: 8, sharding: zero1",
      "tensor: 2, data: 4, sharding: zero3, global_batch: 8",
      "pipeline: 2, data: 2, sharding: fsdp, recompute: full, global_batch: 4",
      "pipeline: 4, data: 2, schedule: zb-h2, global_batch: 16",
      "pipeline: 2, data: 2, schedule: pipedream, clip: 0, global_batch: 8",
      "context: 2, data: 2, global_batch: 4",
      "data: 2, sharding: zero2, offload: {optimizer: cpu, gradients: cpu}",
      "tensor: 2, data: 2, offload: {activations: cpu}, global_batch: 4"};
  for (const char* strategy : strategies) {
    Spec spec = test::spec_of(test::kSmall, strategy);
    spec.cluster.stragglers = {{1, 1.2}, {2, 1.5}};
    const auto copied = pieces_of(make_unchecked_plan(spec));
    const auto written = pieces_of(make_unchecked_plan(spec, AlikeClasses::written));
    EXPECT_EQ(copied.size(), written.size()) << strategy;
    const auto differ = std::ranges::mismatch(copied, written);
    if (differ.in1 != copied.end()) {
      ADD_FAILURE() << strategy << ": copied " << *differ.in1 << ", laid out " << *differ.in2;
    }
  }
}

TEST(MakePlan, RandomStrategiesAreSound) {
  std::map<std::string, std::uint64_t> found;  // faults, each with the first seed that shows it
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Plan plan = make_plan(test::random_spec(seed));  // check_plan() passes
    std::vector<std::string> faults;
    for (std::uint32_t slot = 0; slot < plan.classes.size(); ++slot) {
      Lifetimes(plan, slot, faults).run();
      find_races(plan, slot, faults);
    }
    for (const std::string& fault : faults) found.try_emplace(fault, seed);
  }
  for (const auto& [fault, seed] : found) ADD_FAILURE() << "seed " << seed << ": " << fault;
}

// Blocks hold the weights that the model lists, cut the way it says.
TEST(MakePlan, WeightsAreTheModels) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Spec spec = test::random_spec(seed, {"none"});
    const Plan plan = make_plan(spec);
    const Bytes width = storage_bytes(spec.strategy.precision);
    for (std::uint32_t slot = 0; slot < plan.classes.size(); ++slot) {
      std::vector<std::int64_t> held;
      for (const Frame& f : plan.frames) {
        const Block& block = plan.blocks[f.block];
        if (f.slot == slot && block.role == BlockRole::state) held.push_back(block.buffers[kParameters].bytes / width);
      }
      std::vector<std::int64_t> expected = test::local_parameters(spec, plan.classes[slot].stage);
      std::sort(held.begin(), held.end());
      std::sort(expected.begin(), expected.end());
      ASSERT_EQ(held, expected) << "seed " << seed;
    }
  }
}

struct States {
  const char* strategy;
  double bytes;  // per parameter
};

double bytes_per_parameter(const std::string& model, const std::string& strategy, std::int64_t sequence) {
  const Spec spec = spec_of(model, strategy, sequence);
  return static_cast<double>(test::state_bytes(make_plan(spec), 0)) /
         static_cast<double>(parameter_count(spec.model, spec.sequence));
}

// 24.9 GB for GPT-2 XL's 1,557,611,200 parameters; 24 GB for the paper's 1.5 billion.
TEST(MakePlan, StatesOfOneRank) {
  const Spec spec = spec_of("gpt2-xl", "precision: fp16, gradient_precision: fp16", 1024);
  EXPECT_EQ(test::state_bytes(make_plan(spec), 0), 16 * 1557611200LL);
  const std::vector<States> table = {{"precision: fp16, gradient_precision: fp16", 16},
                                     {"precision: bf16, gradient_precision: bf16", 16},
                                     {"precision: bf16, gradient_precision: fp32", 18},
                                     {"precision: fp8, gradient_precision: fp32", 18},
                                     {"precision: fp32, gradient_precision: fp32", 16},
                                     {"precision: bf16, gradient_precision: fp32, optimizer: sgd", 10},
                                     {"precision: fp32, gradient_precision: fp32, optimizer: sgd", 8}};
  for (const States& s : table) EXPECT_EQ(bytes_per_parameter("gpt2-xl", s.strategy, 1024), s.bytes) << s.strategy;
}

// ZeRO paper, figure 1: 7.5 billion parameters over 64 ranks. Shards are rounded up to whole elements: at most one
// element of each buffer more.
TEST(MakePlan, StatesOfZero) {
  const std::string model =
      "name: 7.5b, layers: 37, hidden: 4096, heads: 32, feed_forward: 16384, vocab: 6720, gated: false, positions: "
      "none";
  ASSERT_NEAR(static_cast<double>(parameter_count(spec_of(model, "", 1024).model, 1024)) / 7.5e9, 1, 0.01);
  const std::string fp16 = "data: 64, precision: fp16, gradient_precision: fp16, sharding: ";
  struct Row {
    const char* sharding;
    double bytes;  // per parameter
    double gigabytes;
  };
  for (const Row& r : {Row{"none", 16, 120}, Row{"zero1", 4 + 12.0 / 64, 31.4}, Row{"zero2", 2 + 14.0 / 64, 16.6},
                       Row{"zero3", 16.0 / 64, 1.9}, Row{"fsdp", 14.0 / 64, 1.6}}) {
    const double bytes = bytes_per_parameter(model, fp16 + r.sharding, 1024);
    EXPECT_NEAR(bytes, r.bytes, 1e-8) << r.sharding;
    EXPECT_NEAR(bytes * 7.5, r.gigabytes, 0.05) << r.sharding;
  }
  // FSDP with fp32 gradients keeps fp32 shards only: (4 + 4 + 8) / N.
  EXPECT_NEAR(bytes_per_parameter(model, "data: 64, sharding: fsdp, gradient_precision: fp32", 1024), 16.0 / 64, 1e-8);
}

// Strategies that cannot run as written are refused, in one line.
TEST(MakePlan, RefusesWhatItCannotPlan) {
  for (const auto& [strategy, expected] : std::vector<std::pair<const char*, const char*>>{
           {"pipeline: 1, virtual_stages: 2, schedule: interleaved, global_batch: 4", "virtual_stages: 2 needs"},
           {"pipeline: 2, virtual_stages: 2, schedule: gpipe, global_batch: 4", "virtual_stages: 2 needs"},
           {"pipeline: 2, virtual_stages: 2, schedule: dapple, global_batch: 4", "virtual_stages: 2 needs"},
           {"pipeline: 2, tensor: 4, tensor_kind: 2d, micro_batch: 2, schedule: vocab-1f1b, global_batch: 8",
            "choose 1d"},
           {"pipeline: 3, schedule: chimera, global_batch: 4", "a multiple of 2 stages"},
           {"pipeline: 2, schedule: chimera, global_batch: 3", "a multiple of 2 micro-batches"},
           {"pipeline: 6, schedule: chimera-4, global_batch: 4", "a multiple of 4 stages"},
           {"pipeline: 4, schedule: dualpipe, global_batch: 4", "needs at least 4 micro-batches over each copy"},
           {"pipeline: 2, virtual_stages: 4, schedule: zb-v, global_batch: 4", "zb-v has 2 a stage"},
           {"data: 2, sharding: zero3, overlap: {micro_batches: true}, global_batch: 8",
            "woven passes over the same weights: not built yet: one pass gives up weights that the other reads; choose "
            "zero2 or "
            "less"},
           {"pipeline: 2, virtual_stages: 2, schedule: interleaved, data: 2, sharding: fsdp, overlap: {micro_batches: "
            "true}, global_batch: 16",
            "woven passes over the same weights"},
           {"context: 2, attention: unfused", "not built yet"},
           {"tensor: 2, data: 2, sharding: data-parallel, global_batch: 4",
            "strategy.tensor: tensor above 1 with data-parallel or parameter-server: not built yet"},
           {"pipeline: 2, data: 2, sharding: parameter-server, global_batch: 4",
            "strategy.pipeline: pipeline above 1 with data-parallel or parameter-server: not built yet"},
           {"data: 2, sharding: parameter-server, parameter_server: {mode: async}, global_batch: 4",
            "clip above 0 with mode: async or ssp: there is no sum of gradients whose norm could be taken; set clip: "
            "0"},
           {"data: 2, sharding: parameter-server, parameter_server: {servers: 2, replicas: 2}, global_batch: 4",
            "clip above 0 with several replicas of servers: not built yet; set clip: 0"},
           {"data: 2, clip: 0, sharding: parameter-server, parameter_server: {servers: 2, replicas: 2, mode: async}, "
            "global_batch: 4",
            "several replicas of servers with mode: async or ssp: not built yet"}}) {
    try {
      make_plan(spec_of(test::kSmall, strategy));
      ADD_FAILURE() << strategy;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(expected), std::string::npos) << e.what();
    }
  }
}

// Every published spec that does not ask for what is refused makes a plan.
// most_rounds bounds the micro-batches, in multiples of the pipeline.
void plan_all(const std::filesystem::path& path, std::int64_t most_rounds) {
  std::ifstream file(path);
  for (const nlohmann::json& row : nlohmann::json::parse(file)) {
    const std::string id = row["id"].get<std::string>();
    try {
      Spec spec = parse_spec(row["spec"].dump(), id);
      Strategy& s = spec.strategy;
      s.global_batch = std::min(s.global_batch, most_rounds * s.pipeline * s.micro_batch * s.data);
      make_plan(spec);
    } catch (const Error& e) {
      const bool refused = std::string(e.what()).find("not built yet") != std::string::npos;
      EXPECT_TRUE(refused) << path.filename() << " " << id << ": " << e.what();
    }
  }
}

TEST(MakePlan, PublishedSample) { plan_all(ORRERY_SOURCE_DIR "/tests/data/published_sample.json", 1); }

TEST(MakePlan, Published) {
  const char* folder = std::getenv("ORRERY_PUBLISHED");
  if (folder == nullptr) GTEST_SKIP() << "ORRERY_PUBLISHED names no folder";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") plan_all(entry.path(), 1 << 20);
  }
}

}  // namespace
}  // namespace orrery
