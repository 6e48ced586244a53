#include "sim/print/xml.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(Xml, TextIsNeverMarkup) {
  EXPECT_EQ(escaped("a < b & \"c\" > 'd'"), "a &lt; b &amp; &quot;c&quot; &gt; &#39;d&#39;");
  EXPECT_EQ(escaped("Ψ × 96 ≤ 𝛼"), "Ψ × 96 ≤ 𝛼");
  EXPECT_EQ(escaped("a\tb\nc"), "a\tb\nc");
}

// Characters that XML forbids, and bytes that are no UTF-8: a lone continuation, a cut letter, an overlong form, a
// surrogate, a code beyond the last.
TEST(Xml, WhatXmlForbidsIsReplaced) {
  const std::string replaced = "\xef\xbf\xbd";
  for (const char* bad : {"\x01", "\x1b", "\x7f", "\x80", "\xc3", "\xf8", "\xff"}) EXPECT_EQ(escaped(bad), replaced);
  EXPECT_EQ(escaped(std::string_view("\0", 1)), replaced);
  EXPECT_EQ(escaped("\xc0\xaf"), replaced + replaced);
  EXPECT_EQ(escaped("\xed\xa0\x80"), replaced + replaced + replaced);
  EXPECT_EQ(escaped("\xf4\x90\x80\x80"), replaced + replaced + replaced + replaced);
  EXPECT_EQ(escaped("\xef\xbf\xbe"), replaced);
  EXPECT_EQ(escaped("\xc2\x85"), replaced);
  EXPECT_EQ(escaped("a\xc3"), "a" + replaced);
}

}  // namespace
}  // namespace orrery
