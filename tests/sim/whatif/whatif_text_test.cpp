#include "sim/whatif/whatif_text.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(WhatifText, TablesNameTheSlowest) {
  WhatifAnswer a{.steps = 3, .measured = 2, .replayed = 1.98, .replay_error = 0.01, .without_gaps = 1.9, .even = 1.5};
  a.asked = 1.8;
  a.by_op = {{"backward-compute", 1.2}, {"gc", 1}};
  a.by_worker = {{"17", 1.25}, {"0", 0.99}};
  a.by_stage = {{"3", 1.3}};
  a.workers = {"0", "17"};
  a.work = {{0.9, 1}, {1, 1.5}};
  a.transfers = {{"all_reduce", 0.25, 0.125}};
  const std::string text = whatif_text(a, {.network = 2}, {});
  for (const char* part : {"measured        2.00  mean of 3 steps", "replayed        1.98  1.00 % off in the mean",
                           "as asked        1.80  -9.1 % of the replayed step", "backward-compute     +20.0",
                           "17       +25.0", "17       +0.0    +50.0"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(whatif_text(a, {}, {}).find("as asked"), std::string::npos);
}

TEST(WhatifText, LongNamesLoseTheirEndsAndRemarksAreShown) {
  WhatifAnswer a{.steps = 1, .measured = 2, .replayed = 2, .without_gaps = 2, .even = 2};
  a.by_op = {{std::string(39, 'a') + "\xe2\x82\xac", 1.2}};
  a.remarks = {"3 transfers are not matched"};
  const std::string text = whatif_text(a, {}, {});
  EXPECT_NE(text.find(std::string(39, 'a') + " "), std::string::npos) << text;
  EXPECT_NE(text.find("\n  3 transfers are not matched\n"), std::string::npos) << text;
}

TEST(WhatifText, AThousandRanksShareRowsThatShowTheSlowest) {
  WhatifAnswer a{.steps = 1, .measured = 2, .replayed = 2, .without_gaps = 2, .even = 2};
  for (int rank = 0; rank < 1024; ++rank) {
    a.workers.push_back(fmt::format("{}", rank));
    a.work.push_back({rank == 1000 ? 1.5 : 1.0});
  }
  const std::string text = whatif_text(a, {}, {});
  for (const char* part :
       {"a cell is the slowest of its ranks and stages\n", "0 to 31         +0.0\n", "992 to 1023    +50.0\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  const auto begin = text.find("Compute of each rank");
  EXPECT_LE(std::count(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), '\n'), 36);
}

}  // namespace
}  // namespace orrery
