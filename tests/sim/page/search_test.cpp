#include "sim/page/search.h"

#include "models/load/open_spec.h"
#include "sim/predict/predict.h"
#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

constexpr const char* kOpenSpec =
    "{model: gpt2, sequence: 1024, cluster: {node: dgx-a100, nodes: 1}, gpus: 2, software: megatron-core, "
    "strategy: {global_batch: 8, micro_batch: 1, schedule: 1f1b, recompute: none}}";

TEST(SearchPage, HasTheBestItsProofAndTheFront) {
  const Space space(parse_open_spec(kOpenSpec, "open.yaml"), 2);
  const Profile profile = profile_for(space.base(), "");
  const SearchResult result = search(space, profile, {});
  ASSERT_FALSE(result.best.empty());
  SearchPage page{space, result};
  const SpecNotes notes{{"open.yaml", kOpenSpec}, {}, {}, "orrery search open.yaml", "orrery test"};
  const std::string plain = search_page(page, notes);
  EXPECT_TRUE(is_closed(plain));
  for (const char* words : {"the best is proven", "--pareto finds the best", "Time against memory",
                            "The best strategies", "id=\"strategies.0.report.step_time_s\"", "step time, "})
    EXPECT_TRUE(has(plain, words)) << words;
  page.front = {{"dgx-a100", 2, "first", {}, 1, 100, {}, Bytes{2} << 30},
                {"dgx-h100", 2, "second & last", {}, 2, 50, 0.5, Bytes{1} << 30}};
  page.front_cut = true;
  page.machines = {{"machines", {}, {{{"machine"}}, {{"dgx-a100"}}}, {}}};
  page.remarks = {"stopped early"};
  const std::string front = search_page(page, notes);
  EXPECT_TRUE(is_closed(front));
  for (const char* words :
       {"Time against cost", "second &amp; last", "Cut: less memory may do", "<h2>Machines</h2>", "stopped early"})
    EXPECT_TRUE(has(front, words)) << words;
}

TEST(SearchPage, SaysThatNothingFits) {
  const Space space(parse_open_spec(kOpenSpec, "open.yaml"), 2);
  SearchResult result;
  result.proven = true;
  result.least_memory = Bytes{100} << 30;
  const std::string page = search_page({space, result}, {{"open.yaml", kOpenSpec}, {}, {}, "", ""});
  EXPECT_TRUE(is_closed(page));
  EXPECT_TRUE(has(page, "nothing fits: the leanest strategy needs at least 100.0 GiB"));
}

TEST(LargestPage, ShowsTheSizeOrThatThereIsNone) {
  const Spec spec = parse_spec(kOpenSpec, "open.yaml");
  const Report report = predict(spec).report;
  const SpecNotes notes{{"open.yaml", kOpenSpec}, {}, {}, "", ""};
  EXPECT_TRUE(
      has(largest_page("largest sequence that fits: 4096", spec, &report, {}, notes), "id=\"report.step_time_s\""));
  EXPECT_TRUE(is_closed(largest_page("sequence: no size fits", spec, nullptr, {"none"}, notes)));
}

}  // namespace
}  // namespace orrery
