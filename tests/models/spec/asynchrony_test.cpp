#include "models/spec/asynchrony.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(Pace, OnlyServersLetWorkersGoTheirOwn) {
  Strategy s;
  EXPECT_FALSE(asynchronous_workers(s));
  s.parameter_server.emplace();
  EXPECT_FALSE(asynchronous_workers(s));
  s.parameter_server->mode = "async";
  EXPECT_TRUE(asynchronous_workers(s));
  EXPECT_FALSE(bounded_staleness(s));
  s.parameter_server->mode = "ssp";
  EXPECT_TRUE(asynchronous_workers(s) && bounded_staleness(s));
}

TEST(Pace, StalenessIsToldInWords) {
  EXPECT_EQ(text_of(Staleness{2.94, 5, 1}),
            "servers: weights were 2.9 updates of other workers old on average, 5 at most; a worker began a step at "
            "most 1 ahead of the slowest");
}

}  // namespace
}  // namespace orrery
