#include "models/trace/measured_json.h"

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/cost/profile.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

Profile machine() {
  Profile p;
  p.name = "a machine, 2 ranks";
  p.memory_bytes = 1 << 30;
  p.fingerprint = {{"device", "a processor"}, {"library", "a library"}};
  p.measured.ops = {{"add fp32", {{{100}, 1200, 1e-6, 0.1, 5}, {{1000}, 12000, 8e-6, 0.05, 7}}}};
  p.measured.transfers = {{"all_reduce", 2, {{4, 3e-6, 0.2, 9}, {4096, 7e-6, 0.1, 9}}}};
  p.measured.issue = 1e-6;
  p.measured.compute_slowdown = 1.25;
  p.measured.transfer_slowdown = 4;
  return p;
}

Profile loaded(const std::string& text) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path("p.json")) << text;
  return load_profile(folder.path("p.json"));
}

TEST(MeasuredJson, AProfileComesBackAsItWas) {
  const Profile before = machine(), after = loaded(to_json(before));
  EXPECT_EQ(to_json(after), to_json(before));
  EXPECT_EQ(after.name, before.name);
  EXPECT_EQ(after.memory_bytes, before.memory_bytes);
  EXPECT_EQ(after.fingerprint, before.fingerprint);
  EXPECT_EQ(fingerprint_of(after, "library"), "a library");
  EXPECT_EQ(fingerprint_of(after, "no such key"), "");
  EXPECT_EQ(after.measured.ops[0].samples[1].sizes, before.measured.ops[0].samples[1].sizes);
  EXPECT_DOUBLE_EQ(after.measured.transfer_slowdown, 4);
  EXPECT_FALSE(after.hash.empty());
}

// Missing and senseless values are reported in one line with the file and the key.
TEST(MeasuredJson, WhatIsMissingOrMakesNoSenseIsNamed) {
  using nlohmann::json;
  const auto error_of = [](const json& root) -> std::string {
    try {
      loaded(root.dump());
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  const json whole = json::parse(to_json(machine()));
  EXPECT_EQ(error_of(whole), "");
  const auto broken = [&](const char* pointer, const json& value) {
    json root = whole;
    root[json::json_pointer(pointer)] = value;
    return error_of(root);
  };
  EXPECT_NE(broken("/measured/ops/0/samples/0/us", 0).find("measured.ops[0].samples[0].us: 0 is not above 0"),
            std::string::npos);
  EXPECT_NE(broken("/measured/ops/0/samples/0/sizes", json::array({1, 2})).find("sizes"), std::string::npos);
  EXPECT_NE(broken("/measured/ops/0/samples", json::array()).find("no sample"), std::string::npos);
  EXPECT_NE(broken("/measured/transfers/0/samples/1/bytes", 4).find("two samples of 4 bytes"), std::string::npos);
  EXPECT_NE(broken("/measured/compute_slowdown", 0.5).find("measured.compute_slowdown: 0.5 is not between 1 and"),
            std::string::npos);
  json root = whole;
  root["measured"].erase("gap_us");
  EXPECT_NE(error_of(root).find("measured.gap_us: is missing"), std::string::npos);
}

}  // namespace
}  // namespace orrery
