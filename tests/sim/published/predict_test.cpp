#include "sim/published/predict.h"

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "sim/predict/predict.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

nlohmann::json row_of(const std::string& id, std::int64_t tensor, double step) {
  return {{"id", id},
          {"group", "made_up"},
          {"spec",
           {{"model", {{"layers", 2}, {"hidden", 1024}, {"heads", 16}, {"feed_forward", 4096}, {"vocab", 32000}}},
            {"sequence", 1024},
            {"cluster", {{"node", "dgx-a100"}, {"nodes", 1}}},
            {"gpus", 8},
            {"strategy", {{"tensor", tensor}, {"global_batch", 8}}}}},
          {"measured", {{"step_time_s", step}}}};
}

class Published : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = folder_.path() + '/' + name;
    std::ofstream(path) << text;
    return path;
  }
  std::vector<PublishedCase> predict(const nlohmann::json& rows, const std::string& name = "made_up.json") {
    std::vector<PublishedCase> cases;
    for (const PublishedRow& row : read_published(write(name, rows.dump())))
      cases.push_back(predict_published(row, ""));
    return cases;
  }

 private:
  test::TemporaryFolder folder_;
};

// Publications name a model in many ways, and some measure a copy with fewer layers.
TEST_F(Published, ModelsAreNamedByTheirWidths) {
  nlohmann::json whole = row_of("whole", 1, 1), named = whole, few = whole, other = whole;
  whole["spec"]["model"] = "llama-3.1-8b";
  named["spec"]["model"] = {{"base", "llama-3.1-8b"}, {"name", "Llama-3.1 8B (MLPerf v5.1)"}};
  few["spec"]["model"] = {{"base", "llama-3.1-8b"}, {"layers", 4}};
  std::vector<PublishedRow> rows =
      read_published(write("rows.json", nlohmann::json({whole, named, few, other}).dump()));
  name_models(rows);
  EXPECT_EQ(rows[0].model, rows[1].model);
  EXPECT_EQ(rows[0].model, rows[2].model);
  EXPECT_NE(rows[0].model, rows[3].model);
}

TEST_F(Published, ErrorsAreThoseOfThePrediction) {
  const std::vector<PublishedCase> first = predict({row_of("a", 1, 1), row_of("b", 2, 1)});
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[0].reason, "");
  EXPECT_EQ(first[0].row.source, "made_up");
  const std::vector<PublishedCase> cases =
      predict({row_of("a", 1, first[0].step_time_s / 1.1), row_of("b", 2, first[1].step_time_s / 0.8)});
  const std::vector<Miss> list = misses(cases, Judged::step, false);
  ASSERT_EQ(list.size(), 2U);
  EXPECT_NEAR(list[0].error, 0.1, 1e-9);
  EXPECT_NEAR(list[1].error, -0.2, 1e-9);
  const std::vector<ErrorSummary> sums = summarize(list);
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_NEAR(sums[0].mean, 0.15, 1e-9);
  EXPECT_NEAR(sums[0].median, 0.15, 1e-9);
  EXPECT_NEAR(sums[0].bias, -0.05, 1e-9);
  EXPECT_NEAR(sums[0].worst, 0.2, 1e-9);
}

// validate --help and docs/figures.md name this file.
TEST_F(Published, TheExampleOfTheHelpIsRead) {
  const std::vector<PublishedRow> rows = read_published(ORRERY_SOURCE_DIR "/benchmarks/offload_papers.json");
  EXPECT_EQ(rows.size(), 3U);
  for (const PublishedRow& row : rows) EXPECT_TRUE(row.step_time_s) << row.id;
}

// Refusals name the file, the row and the key, for every kind of error.
TEST_F(Published, RefusalsNameFileRowAndKey) {
  const auto refusal = [&](const std::string& text) -> std::string {
    try {
      parse_published(text, "rows.json");
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  nlohmann::json row = row_of("a", 1, 1);
  EXPECT_EQ(refusal(nlohmann::json{row}.dump()), "");
  nlohmann::json broken = row;
  broken["measured"]["step_time_s"] = -1;
  EXPECT_EQ(refusal((nlohmann::json{row, broken}).dump()), "rows.json: row 2: measured.step_time_s: -1 is not above 0");
  broken.erase("measured");
  EXPECT_EQ(refusal((nlohmann::json{row, broken}).dump()), "rows.json: row 2: measured: is missing");
  EXPECT_EQ(refusal("[1]"), "rows.json: row 1: 1 stands where an object {...} is needed");
  row["notes"] = 3;
  row["spec"]["strategy"] = "x";
  row["spec"]["software"] = {{"profile", 7}};
  EXPECT_EQ(refusal(nlohmann::json{row}.dump()), "");
  EXPECT_EQ(refusal("{}"),
            "rows.json: an object stands where a list [...] is needed; a list of published measurements is needed");
}

TEST_F(Published, DoubtfulAndUnsupportedRowsStandApart) {
  nlohmann::json doubtful = row_of("d", 1, 1), unsupported = row_of("u", 1, 1);
  doubtful["doubtful"] = "its neighbours disagree";
  unsupported["spec"]["strategy"]["schedule"] = "vocab-1f1b";
  unsupported["spec"]["model"]["logit_softcap"] = 30;
  unsupported["spec"]["strategy"]["pipeline"] = 2;
  unsupported["spec"]["strategy"]["tensor"] = 2;
  const std::vector<PublishedCase> cases = predict({row_of("a", 1, 1), doubtful, unsupported});
  EXPECT_EQ(misses(cases, Judged::step, false).size(), 1U);
  EXPECT_EQ(misses(cases, Judged::step, true).size(), 1U);
  EXPECT_NE(cases[2].reason.find("strategy.schedule"), std::string::npos) << cases[2].reason;
  const std::string text = published_text(cases);
  EXPECT_NE(text.find("not supported"), std::string::npos);
  EXPECT_NE(text.find("doubtful"), std::string::npos);
  const nlohmann::json whole = nlohmann::json::parse(published_json(cases));
  EXPECT_EQ(whole["rows"].size(), 3U);
  EXPECT_TRUE(whole["rows"][2].contains("not_supported"));
}

TEST_F(Published, NullModelIsOneRatePerSource) {
  const std::vector<PublishedCase> cases = predict({row_of("a", 1, 1), row_of("b", 1, 1), row_of("c", 1, 2)});
  const std::vector<Miss> list = misses(cases, Judged::step, false);
  EXPECT_NEAR(list[0].null_error, 0, 1e-12);
  EXPECT_NEAR(list[2].null_error, -0.5, 1e-12);
}

TEST_F(Published, RegretIsOfTheLayoutThatWouldBePicked) {
  nlohmann::json rows;
  for (const std::int64_t tensor : {1, 2, 4, 8}) rows.push_back(row_of("t", tensor, 1));
  std::vector<PublishedCase> cases = predict(rows);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].step_time_s = 1 + static_cast<double>(i);             // the first is picked
    cases[i].row.step_time_s = 2 - 0.25 * static_cast<double>(i);  // the last is fastest: 1.25 s
  }
  const std::vector<GridRegret> list = regrets(cases);
  ASSERT_EQ(list.size(), 1U);
  EXPECT_NEAR(list[0].mean, 2 / 1.25 - 1, 1e-12);
  EXPECT_EQ(list[0].right, 0);
}

// Statements in a row's text are filled into the row's spec; values in the spec stay, unless the source does not state
// them.
TEST_F(Published, WordsFillWhatASpecLeavesOut) {
  const auto spec_of = [&](const nlohmann::json& row) {
    return nlohmann::json::parse(read_published(write("a.json", nlohmann::json{row}.dump()))[0].spec);
  };
  nlohmann::json row = row_of("f", 1, 1);
  EXPECT_FALSE(spec_of(row)["strategy"].contains("attention"));
  row["spec"]["model"]["name"] = "GPT (minGPT)";
  EXPECT_EQ(spec_of(row)["strategy"]["attention"], "unfused");
  row["spec"]["strategy"]["attention"] = "flash";
  EXPECT_EQ(spec_of(row)["strategy"]["attention"], "flash");
  row["spec"]["software"] = "pytorch-fsdp";
  row["framework"] = "PyTorch FSDP (Composer)";
  EXPECT_EQ(spec_of(row)["software"]["attention_kernel"], "fa1");
  EXPECT_EQ(spec_of(row)["software"]["profile"], "pytorch-fsdp");
  EXPECT_EQ(spec_of(row)["software"]["blocking_steps"], true);
  row["source"] = "Zero Bubble Pipeline Parallelism";
  EXPECT_EQ(spec_of(row)["model"]["vocab"], 32000);
  row["spec"]["model"]["vocab"] = 50304;
  EXPECT_EQ(spec_of(row)["model"]["vocab"], 50304);
  row["unstated"] = {"model.vocab"};
  EXPECT_EQ(spec_of(row)["model"]["vocab"], 32000);
  row["source"] = "container NeMo 24.07";
  row["spec"]["model"]["name"] = "GPT";
  EXPECT_FALSE(spec_of(row)["model"].contains("dropout"));  // a fact of two words needs both
  row["spec"]["model"]["name"] = "GPT-3 5B";
  EXPECT_EQ(spec_of(row)["model"]["dropout"], 0.1);
  row["where"] = "github.com/pytorch/torchtitan";
  row["id"] = "l2_13B_slow";
  EXPECT_NE(spec_of(row)["software"].value("selective_recompute", ""), "second_layers");
  row["id"] = "l2_13B_sl";
  EXPECT_EQ(spec_of(row)["software"]["selective_recompute"], "second_layers");
}

// A fact is read, or says what it was inferred from; without inferred ones a spec is as its row states it.
TEST_F(Published, InferredFactsAreMarkedAndCanBeLeftOut) {
  const nlohmann::json file = nlohmann::json::parse(data_file("published_facts.json"));
  for (const nlohmann::json& fact : file.at("facts")) {
    const std::string source = fact.at("source").get<std::string>();
    EXPECT_EQ(fact.contains("inferred_from"), source.find("infer") != std::string::npos) << source;
    const nlohmann::json inferred = fact.value("inferred_from", nlohmann::json::object());
    for (const auto& [key, from] : inferred.items()) {
      EXPECT_TRUE(fact.at("fills").contains(key)) << key;
      EXPECT_TRUE(from == "documents" || from == "rows") << key;
    }
  }
  nlohmann::json row = row_of("f", 1, 1);
  row["source"] = "Zero Bubble Pipeline Parallelism";
  row["facts"] = {{"release", "fork"}};
  row["spec"]["model"]["vocab"] = 50304;
  const auto model_of = [&](PublishedFacts facts) {
    const PublishedRow read = read_published(write("a.json", nlohmann::json{row}.dump()), facts)[0];
    EXPECT_EQ(read.release, "fork");
    return nlohmann::json::parse(read.spec)["model"];
  };
  row["unstated"] = {"model.vocab"};
  EXPECT_EQ(model_of(PublishedFacts::all)["vocab"], 32000);
  EXPECT_NE(model_of(PublishedFacts::read)["vocab"], 32000);
  EXPECT_EQ(model_of(PublishedFacts::read)["tied_embeddings"], false) << "a script of the artifact says so";
}

// A value in a row that contradicts the row's source is corrected; rows with another value are left alone.
TEST_F(Published, WordsCorrectWhatASpecMisstates) {
  const auto strategy_of = [&](const nlohmann::json& row) {
    return nlohmann::json::parse(read_published(write("a.json", nlohmann::json{row}.dump()))[0].spec)["strategy"];
  };
  nlohmann::json row = row_of("zero_40B", 4, 1);
  row["source"] = "ZeRO Fig.2 throughput";
  row["spec"]["strategy"]["sharding"] = "none";
  EXPECT_EQ(strategy_of(row)["sharding"], "none");
  EXPECT_FALSE(strategy_of(row).contains("partition_activations"));
  row["spec"]["strategy"]["sharding"] = "zero1";
  EXPECT_EQ(strategy_of(row)["sharding"], "zero2");
  EXPECT_EQ(strategy_of(row)["partition_activations"], true);
  row["source"] = "ZeRO throughput under C1..C5";
  row["spec"]["strategy"]["sharding"] = "none";
  EXPECT_EQ(strategy_of(row)["sharding"], "none");
  row["id"] = "zero_60B_C5";  // the row's id names the configuration
  EXPECT_EQ(strategy_of(row)["sharding"], "zero2");
  EXPECT_EQ(strategy_of(row)["offload"]["activations"], "cpu");
}

// A row that says that its step stalled is judged against that state of the stack, besides the usual one.
TEST_F(Published, StalledStepsAreJudgedAsStalled) {
  nlohmann::json row = row_of("s", 1, 1);
  row["spec"]["software"] = "nanotron";
  row["spec"]["strategy"] = {{"pipeline", 2}, {"data", 4}, {"global_batch", 16}};
  nlohmann::json stalled = row;
  stalled["doubtful"] = "stalled: longer than every sibling";
  std::vector<PublishedCase> cases = predict({row, stalled});
  EXPECT_NEAR(cases[0].stalled_step_s, cases[0].step_time_s + 4 * 0.55, 1e-9);
  for (PublishedCase& c : cases) c.row.step_time_s = cases[0].stalled_step_s / 1.1;
  const std::vector<Miss> list = misses(cases, Judged::stalled, true);
  ASSERT_EQ(list.size(), 1U);
  EXPECT_NEAR(list[0].error, 0.1, 1e-9);
  EXPECT_TRUE(misses(cases, Judged::stalled, false).empty()) << "that row does not say so";
  EXPECT_EQ(nlohmann::json::parse(published_json(cases))["stalled_step_time"][0]["rows"], 1);
  EXPECT_TRUE(misses(cases, Judged::stalled_memory, true).empty()) << "no memory was measured";
  for (PublishedCase& c : cases) c.row.peak_memory_bytes = c.stalled_memory_bytes / 1.1;
  EXPECT_NEAR(misses(cases, Judged::stalled_memory, true).at(0).error, 0.1, 1e-9);
  EXPECT_EQ(nlohmann::json::parse(published_json(cases))["stalled_peak_memory"][0]["rows"], 1);
}

// A step that was composed from parts does not show that it fits in a GPU's memory.
TEST_F(Published, ComposedStepsSayNothingOfMemory) {
  nlohmann::json row = row_of("c", 1, 1);
  row["spec"]["cluster"] = {{"gpu", "a100-sxm-40gb"}, {"gpus_per_node", 8}, {"nodes", 1}};
  row["spec"]["strategy"]["micro_batch"] = 256;
  row["spec"]["strategy"]["global_batch"] = 2048;
  nlohmann::json composed = row;
  composed["notes"] = "apparently composed from about 32 profiled layer times";
  const std::vector<PublishedCase> cases = predict({row, composed});
  EXPECT_FALSE(cases[0].fits);
  EXPECT_FALSE(cases[1].fits);
  EXPECT_NE(published_text(cases).find("1 of 1 rows that ran called so too"), std::string::npos);
  const nlohmann::json json = nlohmann::json::parse(published_json(cases));
  EXPECT_EQ(json["rows"][0]["fits"]["measured"], true);
  EXPECT_FALSE(json["rows"][1]["fits"].contains("measured"));
}

// Texts of a published row are interpreted: a source's GB may be 2^30 bytes; notes may set keys, also in a map that the
// row's spec does not have yet.
TEST_F(Published, WordsSayUnitsAndFeatures) {
  nlohmann::json row = row_of("u", 1, 1);
  row["measured"]["peak_memory_bytes"] = 10e9;
  row["notes"] = "extras: {\"moe_a2a_overlap\": true}";
  const auto read = [&] { return read_published(write("a.json", nlohmann::json{row}.dump()))[0]; };
  EXPECT_DOUBLE_EQ(*read().peak_memory_bytes, 10e9);
  EXPECT_EQ(nlohmann::json::parse(read().spec)["strategy"]["overlap"]["micro_batches"], true);
  row["source"] = "Balancing Pipeline Parallelism with Vocabulary Parallelism";
  EXPECT_DOUBLE_EQ(*read().peak_memory_bytes, 10 * 1073741824.0);
}

// Bubbles, which may be zero, are judged by their difference, not their ratio, without launches and transfers.
TEST_F(Published, BubblesAreComparedInPoints) {
  nlohmann::json row = row_of("b", 1, 1);
  row["spec"]["strategy"] = {{"pipeline", 4}, {"data", 2}, {"global_batch", 16}, {"clip", 0}};
  row["spec"]["model"]["layers"] = 8;
  row["spec"]["model"]["vocab"] = 256;
  row["measured"]["bubble_fraction"] = 0.2;
  const std::vector<PublishedCase> cases = predict(nlohmann::json::array({row}));
  const std::vector<Miss> list = misses(cases, Judged::bubble, false);
  ASSERT_EQ(list.size(), 1U);
  EXPECT_NEAR(list[0].error, cases[0].bubble_fraction - 0.2, 1e-12);
  EXPECT_NEAR(cases[0].bubble_fraction, 3.0 / 11, 0.06);  // (p - 1) / (m + p - 1), but for the head and the update
  EXPECT_NE(published_json(cases).find("bubble_fraction"), std::string::npos);
  EXPECT_NE(published_text(cases).find("without launches and transfers"), std::string::npos);
}

// An unstated memory figure is taken to be the peak that the stack's log usually prints, of the rank that prints it.
TEST_F(Published, UnstatedMemoryIsWhatTheStackLogs) {
  nlohmann::json row = row_of("m", 1, 1);
  row["measured"]["peak_memory_bytes"] = 1e9;
  row["spec"]["software"] = "nanotron";
  const PublishedCase reserved = predict(nlohmann::json::array({row}))[0];
  EXPECT_EQ(reserved.row.memory_kind, "reserved");
  row["measured"]["peak_memory_kind"] = "allocated";
  const PublishedCase allocated = predict(nlohmann::json::array({row}))[0];
  EXPECT_EQ(allocated.row.memory_kind, "allocated");
  EXPECT_GE(reserved.peak_memory_bytes, allocated.peak_memory_bytes);
}

// A stack whose log counts from the last micro-batch on prints the memory reserved then: less than the peak, where a
// full device gave cached segments back before.
TEST_F(Published, LogsMayCountFromTheUpdate) {
  nlohmann::json row = row_of("m", 1, 1);
  row["measured"]["peak_memory_bytes"] = 1e9;
  row["measured"]["peak_memory_kind"] = "reserved";
  row["spec"]["model"] = {{"layers", 32},  {"hidden", 4096},        {"heads", 32},
                          {"kv_heads", 8}, {"feed_forward", 14336}, {"vocab", 131072}};
  row["spec"]["sequence"] = 4096;
  row["spec"]["cluster"] = {{"node", "dgx-h100"}, {"nodes", 4}};
  row["spec"]["gpus"] = 32;
  row["spec"]["strategy"] = {{"data", 4}, {"tensor", 8}, {"sharding", "zero1"}};
  const auto printed = [&](int micro_batch, bool update) {
    row["spec"]["strategy"]["micro_batch"] = micro_batch;
    row["spec"]["strategy"]["global_batch"] = 4 * micro_batch;
    row["spec"]["software"] = {{"profile", "nanotron"}, {"logs_update", update}, {"waits_for_loss", false}};
    const PublishedCase c = predict(nlohmann::json::array({row}))[0];
    EXPECT_TRUE(c.fits) << c.reason;
    return c.peak_memory_bytes;
  };
  EXPECT_TRUE(find_software("nanotron").log.logs_update);
  EXPECT_FALSE(find_software("torchtitan").log.logs_update);
  EXPECT_EQ(printed(1, true), printed(1, false));
  EXPECT_LT(printed(16, true), printed(16, false));
}

TEST_F(Published, PictureAndPageShowEverySource) {
  const std::vector<PublishedCase> cases = predict({row_of("a", 1, 1), row_of("b", 2, 1)});
  const std::string picture = scatter_svg(cases), page = published_page(cases, nullptr, "p.svg");
  EXPECT_NE(picture.find("<title>a</title>"), std::string::npos);
  EXPECT_EQ(picture.find("nan"), std::string::npos);
  EXPECT_NE(page.find("| made_up | 2 |"), std::string::npos) << page;
  EXPECT_NE(page.find("(p.svg)"), std::string::npos);
}

TEST_F(Published, CoverageCountsStepsInTheirInterval) {
  std::vector<PublishedCase> cases = predict({row_of("a", 1, 1), row_of("b", 2, 1)});
  cases[0].step_time_low_s = 0.9;
  cases[0].step_time_high_s = 1.1;
  cases[1].step_time_low_s = 1.01;
  cases[1].step_time_high_s = 1.1;
  EXPECT_EQ(coverage(cases).rows, 2U);
  EXPECT_EQ(coverage(cases).inside, 1U);
}

TEST_F(Published, BadFilesAreRefusedWithTheRow) {
  EXPECT_THROW(read_published("/nowhere.json"), Error);
  EXPECT_THROW(read_published(write("a.json", "{")), Error);
  EXPECT_THROW(read_published(write("a.json", "{}")), Error);
  nlohmann::json row = row_of("a", 1, -1);
  try {
    read_published(write("a.json", nlohmann::json{row}.dump()));
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("row 1"), std::string::npos) << e.what();
  }
}

// Steps of very many micro-batches are extrapolated from shorter ones.
TEST_F(Published, LongStepsAreThoseOfTheirPeriods) {
  for (const int stages : {1, 2}) {
    nlohmann::json row = row_of("a", 1, 1);
    row["spec"]["software"] = "megatron-core";
    const int data = 8 / stages;
    row["spec"]["strategy"] = {
        {"pipeline", stages}, {"data", data}, {"micro_batch", 1}, {"global_batch", data * 150 * stages}};
    const PublishedCase told = predict(nlohmann::json::array({row})).front();
    const Report played = orrery::predict(parse_spec(row["spec"].dump(), "a"), false, "").report;
    EXPECT_EQ(told.reason, "");
    EXPECT_NEAR(told.step_time_s / played.step_time_s, 1, 1e-6) << stages;
    EXPECT_NEAR(told.step_time_high_s / played.step_time_high_s, 1, 1e-6) << stages;
    double sum = 0;
    for (const double part : told.time_s) sum += part;
    EXPECT_NEAR(sum / told.step_time_s, 1, 1e-6) << stages;
  }
}

}  // namespace
}  // namespace orrery
