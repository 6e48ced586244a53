#include "sim/report/uplink_remark.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(UplinkRemark, SaysHowMuchLongerWhereThatIsSomething) {
  const auto remark = [](double slowdown, double share, UplinkKind kind) {
    return uplink_remark({kind, slowdown, share, 256, 0});
  };
  EXPECT_EQ(remark(2.666, 1, UplinkKind::switches),
            "takes 2.67 times as long over the uplinks of 256 GPUs, 100 % full");
  EXPECT_EQ(remark(1, .9, UplinkKind::switches), "runs over the uplinks of 256 GPUs, 90 % full");
  EXPECT_EQ(remark(1.04, .5, UplinkKind::torus), "runs over the torus, whose busiest link is 50 % full");
  EXPECT_EQ(remark(1.03, 0, UplinkKind::rail_change), "takes 3 % longer through NVLink to the NICs of other rails");
  EXPECT_EQ(remark(1.001, .5, UplinkKind::switches), "");
  EXPECT_EQ(remark(1, .9, UplinkKind::incast), "");
}

}  // namespace
}  // namespace orrery
