#include "viz/draw/saved_view.h"

#include <gtest/gtest.h>

#include <fstream>

#include "models/base/error.h"
#include "tests/temporary_folder.h"
#include "tests/viz/events.h"

using namespace orrery;

namespace {

SavedView kept_view() {
  SavedView v;
  v.inputs = {"step.json"};
  v.options = {{"strategy.tensor=2"}, "", true};
  v.document = "step";
  v.begin = 5'000'000;
  v.end = 40'000'001;
  v.area_from = 6'000'000;
  v.area_to = 7'000'000;
  v.marked = 12;
  v.group_by = "pipeline";
  v.closed_groups = {3};
  v.closed = {"rank 1"};
  v.pinned = {"rank 0: compute"};
  v.arrows = false;
  v.search = "norm";
  v.notes = {{1, 2, "rank 1", "why is \"this\" late?"}, {30'000'000, 30'000'000, "", "end of warm-up"}};
  return v;
}

std::string refusal_of(const std::string& text) {
  try {
    parse_view(text, "v.json");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

void write_text(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace

TEST(SavedView, ComesBackAsItWas) {
  EXPECT_EQ(parse_view(to_json(kept_view()), "v.json"), kept_view());
  EXPECT_EQ(parse_view(R"({"schema": "orrery.view/1"})", "v.json"), SavedView());
}

TEST(SavedView, RefusesWhatIsNone) {
  EXPECT_NE(refusal_of("[]").find("v.json: is no orrery.view/1"), std::string::npos);
  EXPECT_NE(refusal_of("{").find("v.json:1: is no JSON: it ends too soon"), std::string::npos);
  EXPECT_NE(refusal_of(R"({"schema": "orrery.view/2"})").find("is no orrery.view/1"), std::string::npos);
  EXPECT_NE(refusal_of(R"({"schema": "orrery.view/1", "zoom": 3})").find("v.json: unknown key zoom"),
            std::string::npos);
  EXPECT_NE(refusal_of(R"({"schema": "orrery.view/1", "notes": [{"at": 3}]})").find("v.json: notes[0]: unknown key at"),
            std::string::npos);
  EXPECT_NE(refusal_of(R"({"schema": "orrery.view/1", "begin_ps": "x"})")
                .find("v.json: begin_ps: \"x\" is not a whole number"),
            std::string::npos);
}

TEST(SavedView, TimesAreWithinAnyTrace) {
  const SavedView v = parse_view(
      R"({"schema": "orrery.view/1", "begin_ps": -9, "area_from_ps": 9, "area_to_ps": 3, "marked_ps": -5,
          "notes": [{"from_ps": 9223372036854775807, "to_ps": 1, "text": "x"}]})",
      "v.json");
  EXPECT_EQ(v.begin, 0);
  EXPECT_EQ(v.area_to, v.area_from);
  EXPECT_LT(v.marked, 0);
  EXPECT_EQ(v.notes[0].to, v.notes[0].from);
  EXPECT_LT(v.notes[0].from, INT64_MAX / 2);
}

TEST(SavedView, LayoutFitsAnotherTraceByNames) {
  const Timeline t = made_pipeline(), longer = made_pipeline(3), other = two_lanes();
  LayoutOptions o;
  o.group_by = 2;
  o.closed = {1};
  o.closed_groups = {0};
  o.pinned = {t.processes[0].tracks[0]};
  o.host = true;
  o.counters = false;
  SavedView v;
  take_layout(v, t, o);
  EXPECT_EQ(v.closed, std::vector<std::string>{"rank 1"});
  EXPECT_EQ(v.pinned, std::vector<std::string>{"rank 0: compute"});
  const LayoutOptions back = layout_of(v, longer);
  EXPECT_EQ(back.group_by, 2);
  EXPECT_EQ(back.closed, o.closed);
  EXPECT_EQ(back.closed_groups, o.closed_groups);
  EXPECT_EQ(back.pinned, o.pinned);
  EXPECT_TRUE(back.host);
  EXPECT_FALSE(back.counters);
  EXPECT_TRUE(layout_of(v, other).closed.empty());
  EXPECT_EQ(layout_of(v, other).pinned.size(), 1u);
}

TEST(SavedView, InputsAreFoundFromTheFilesFolder) {
  const test::TemporaryFolder folder;
  write_text(folder.path("step.json"), "[]");
  SavedView v = kept_view();
  v.inputs = {folder.path("step.json")};
  v.options.profile = folder.path("machine.json");
  write_view(folder.path("v.json"), v);
  std::ifstream in(folder.path("v.json"));
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(text.find(folder.path("")), std::string::npos);  // the folder may be moved
  EXPECT_EQ(read_view(folder.path("v.json")), v);
}

TEST(SavedView, OpensItsInputsOrIsAppliedToOthers) {
  const test::TemporaryFolder folder;
  write_text(folder.path("a.json"), "[]");
  SavedView v = kept_view();
  v.inputs = {folder.path("a.json")};
  write_view(folder.path("v.json"), v);
  const Opening alone = opening_of({folder.path("v.json")}, {});
  EXPECT_EQ(alone.inputs, v.inputs);
  EXPECT_TRUE(alone.options.unfold);
  ASSERT_TRUE(alone.view);
  const Opening beside = opening_of({folder.path("v.json"), "other.yaml"}, {});
  EXPECT_EQ(beside.inputs, std::vector<std::string>{"other.yaml"});
  EXPECT_FALSE(beside.options.unfold);
  EXPECT_TRUE(beside.view);
  EXPECT_FALSE(opening_of({folder.path("a.json")}, {}).view);
  EXPECT_THROW(opening_of({folder.path("v.json"), folder.path("v.json")}, {}), Error);
  write_text(folder.path("none.json"), to_json(SavedView()));
  EXPECT_THROW(opening_of({folder.path("none.json")}, {}), Error);
}
