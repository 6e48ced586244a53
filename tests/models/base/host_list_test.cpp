#include "models/base/host_list.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/random_bits.h"

namespace orrery {
namespace {

using Names = std::vector<std::string>;

TEST(HostList, IsReadAsSlurmReadsIt) {
  EXPECT_EQ(host_names("a[00-03,7],b1", 100), (Names{"a00", "a01", "a02", "a03", "a7", "b1"}));
  EXPECT_EQ(host_names("r[1-2]n[9-10]", 100), (Names{"r1n9", "r1n10", "r2n9", "r2n10"}));
  EXPECT_EQ(host_names(" x,\n\ty.example.com, z ", 100), (Names{"x", "y.example.com", "z"}));
  EXPECT_EQ(host_names("n[098-101]", 100), (Names{"n098", "n099", "n100", "n101"}));
  EXPECT_TRUE(host_names("", 100).empty());
}

TEST(HostList, IsRefusedWhereItIsNone) {
  for (const char* list : {"n[0-", "n[3-1]", "n[a-b]", "n[]", "n]", "n[[1]]", "n[1 2]", "n[0-99999999999999999999]",
                           "n[0-100]", "a[0-9]b[0-10]", "n[-1]", "n[1-]"})
    EXPECT_THROW(host_names(list, 100), Error) << list;
  EXPECT_EQ(host_names("n[0-99]", 100).size(), 100U);
}

TEST(HostList, IsWrittenWithRanges) {
  EXPECT_EQ(host_list({"a00", "a01", "a02", "a7", "b1", "c"}), "a[00-02,7],b1,c");
  EXPECT_EQ(host_list({"n9", "n10"}), "n[9-10]");
  EXPECT_EQ(host_list({"n08", "n09", "n10", "n9", "n010"}), "n[08-10,9,010]");
  EXPECT_EQ(host_list({}), "");
  EXPECT_EQ(host_list({"-", "n2", "n1"}), "-,n[2,1]");
}

TEST(HostList, IsReadBack) {
  std::uint64_t counter = 0;
  const auto below = [&](std::uint64_t n) { return test::random_bits(++counter) % n; };
  for (int round = 0; round < 2000; ++round) {
    Names names;
    for (std::uint64_t n = below(8); n > 0; --n) {
      std::string name(1, "ab-"[below(3)]);
      for (std::uint64_t digits = below(4); digits > 0; --digits) name += static_cast<char>('0' + below(3));
      names.push_back(name + (below(4) == 0 ? "x" : ""));
    }
    ASSERT_EQ(host_names(host_list(names), 1000), names) << host_list(names);
  }
}

}  // namespace
}  // namespace orrery
