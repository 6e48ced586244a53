#include "models/base/natural_order.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(NaturalOrder, DigitsCountAsNumbers) {
  const std::vector<std::string> ordered = {"",
                                            "0",
                                            "2",
                                            "10",
                                            "99999999999999999998",
                                            "99999999999999999999",
                                            "100000000000000000000",
                                            "a",
                                            "a/rank02.json",
                                            "a/rank2.json",
                                            "a/rank2.json.gz",
                                            "a/rank10.json",
                                            "rank 1, GPU 3",
                                            "rank 1, GPU 11",
                                            "rank 2",
                                            "rank 02, GPU 1",
                                            "rank x"};
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    for (std::size_t k = 0; k < ordered.size(); ++k)
      EXPECT_EQ(in_natural_order(ordered[i], ordered[k]), i < k) << ordered[i] << " and " << ordered[k];
  }
}

}  // namespace
}  // namespace orrery
