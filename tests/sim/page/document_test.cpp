#include "sim/page/document.h"

#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

TEST(Document, IsOneFileThatLoadsNothing) {
  const std::string page = document({"a </title> b", {"under"}, "orrery simulate 'a b'", "orrery 1.2", "<p>body</p>"});
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(is_closed(page));
  EXPECT_FALSE(has(page, "<script"));
  EXPECT_FALSE(has(page, "<link"));
  EXPECT_FALSE(has(page, "url("));
  EXPECT_FALSE(has(page, "@import"));
  EXPECT_TRUE(has(page, "default-src 'none'"));
  EXPECT_EQ(count(page, "a &lt;/title&gt; b"), 2);
  for (const char* part :
       {"<p>under</p>", "<p>body</p>", "orrery simulate &#39;a b&#39;", "made by orrery 1.2", "@media print", "@page"})
    EXPECT_TRUE(has(page, part)) << part;
}

TEST(Document, WithoutACommandSaysNone) { EXPECT_FALSE(has(document({"title", {}, "", "orrery", ""}), "<code>")); }

}  // namespace
}  // namespace orrery
