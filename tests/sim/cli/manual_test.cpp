#include "sim/cli/manual.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/reference.h"

namespace orrery {
namespace {

CommandEntry manual_tool() {
  CommandEntry go{"go", "does it - at once", "example: tool go .file\nexit status: 0 ok", {}, {}};
  go.options.push_back({{"SPEC"}, "", "what", ValueKind::file, {}, true, true});
  go.options.push_back({{"-n", "--number"}, "N", "'how' many\\few", ValueKind::other, {}, false, false});
  return {"tool", "a tool", "", {{{"--quiet"}, "", "say nothing", ValueKind::none, {}, false, false}}, {go}};
}

bool page_has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Manual, APageOfTheProgramOfEachCommandAndOfSpecs) {
  const std::vector<ManualPage> pages = manual_pages(manual_tool());
  ASSERT_EQ(pages.size(), 3U);
  EXPECT_EQ(pages[0].file(), "tool.1");
  EXPECT_EQ(pages[1].file(), "tool-go.1");
  EXPECT_EQ(pages[2].file(), "orrery-spec.5");
  EXPECT_TRUE(page_has(pages[0].text, "\\fBgo\\fR\ndoes it \\- at once"));
  EXPECT_TRUE(page_has(pages[0].text, "\\fB\\-\\-quiet\\fR"));
}

TEST(Manual, ACommandHasItsOptionsAndExamples) {
  const std::string text = manual_pages(manual_tool())[1].text;
  EXPECT_TRUE(page_has(text, "\\fItool go\\fR") || page_has(text, "\\fBtool go\\fR \\fISPEC\\fR ..."));
  EXPECT_TRUE(page_has(text, "\\fB\\-n\\fR, \\fB\\-\\-number\\fR \\fIN\\fR\n\\&'how' many\\efew\n"));
  EXPECT_TRUE(page_has(text, ".SH EXAMPLES\n.nf\ntool go .file\n.fi\n"));
  EXPECT_TRUE(page_has(text, ".SH EXIT STATUS\n0 ok\n"));
}

TEST(Manual, HasEveryKeyOfASpec) {
  const std::string text = manual_pages(manual_tool())[2].text;
  for (const KeyReference& k : spec_reference()) EXPECT_TRUE(page_has(text, "\n\\fB" + k.key + "\\fR\n")) << k.key;
}

TEST(Manual, NamesThePagesThatThereAre) {
  EXPECT_TRUE(manual_command(manual_tool(), "tool-go", "").verbatim);
  EXPECT_THROW(manual_command(manual_tool(), "tool-went", ""), Error);
}

}  // namespace
}  // namespace orrery
