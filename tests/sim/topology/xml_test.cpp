#include "sim/topology/xml.h"

#include <gtest/gtest.h>
#include <boost/property_tree/ptree.hpp>

#include "models/base/error.h"

namespace orrery {
namespace {

std::string refusal(const std::string& text) {
  try {
    read_nccl_xml(text, "t.xml");
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(NcclXml, KeepsElementsAndAttributes) {
  EXPECT_EQ(read_nccl_xml("<a><b c=\"3\"/></a>", "t.xml").get<int>("a.b.<xmlattr>.c"), 3);
}

TEST(NcclXml, RefusesWhatIsNoXmlOrTooDeep) {
  EXPECT_EQ(refusal("<a>\n<b</a>").substr(0, 19), "t.xml:2: is no XML:");
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "<a>";
  EXPECT_NE(refusal(deep).find("nested more deeply"), std::string::npos);
}

}  // namespace
}  // namespace orrery
