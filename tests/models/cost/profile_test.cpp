#include "models/cost/profile.h"

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/error.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

// The message of the error that a profile's text gives, "" if none.
std::string profile_error(const std::string& text) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("p.json");
  std::ofstream(path) << text;
  std::string message;
  try {
    load_profile(path);
  } catch (const Error& e) {
    message = e.what();
  }
  return message;
}

nlohmann::json hopper() { return nlohmann::json::parse(data_file("profiles/hopper.json")); }

TEST(Profile, EveryBuiltInOneIsWholeAndNamesItsSources) {
  for (const std::string_view name : data_names("profiles")) {
    const std::string text(data_file("profiles/" + std::string(name) + ".json"));
    EXPECT_EQ(profile_error(text), "") << name;
    const nlohmann::json root = nlohmann::json::parse(text);
    EXPECT_TRUE(root.at("gemm").contains("tiles_source")) << name;
    for (const nlohmann::json& kernel : root.at("attention").at("kernels"))
      EXPECT_FALSE(kernel.at("source").get<std::string>().empty()) << name;
    for (const char* key : {"kernel_gap_us", "vector_fraction", "contention", "spread"})
      EXPECT_TRUE(root.at(key).contains("source")) << name << " " << key;
  }
}

// A missing number, or a word in its place, is reported in one line with the file and the key.
TEST(Profile, MissingNumbersAreNamed) {
  const std::pair<const char*, const char*> keys[] = {{"/gemm/prologue_us", "gemm.prologue_us"},
                                                      {"/gemm/smoothing", "gemm.smoothing"},
                                                      {"/memory/fraction", "memory.fraction"},
                                                      {"/memory/start_us", "memory.start_us"},
                                                      {"/kernel_gap_us", "kernel_gap_us"},
                                                      {"/contention", "contention"},
                                                      {"/spread", "spread"},
                                                      {"/gemm", "gemm"},
                                                      {"/memory", "memory"},
                                                      {"/attention", "attention"},
                                                      {"/attention/kernels", "attention.kernels"},
                                                      {"/attention/kernels/0/heads", "heads"},
                                                      {"/attention/kernels/0/start_us", "start_us"},
                                                      {"/gemm/tiles", "gemm.tiles"},
                                                      {"/gemm/tiles/0/rows", "rows"},
                                                      {"/attention/kernels/0/heads/0/head_dim", "head_dim"}};
  for (const auto& [pointer, name] : keys) {
    nlohmann::json root = hopper();
    const nlohmann::json::json_pointer at(pointer);
    root.at(at.parent_pointer()).erase(at.back());
    const std::string message = profile_error(root.dump());
    EXPECT_NE(message.find(".json: "), std::string::npos) << pointer;
    EXPECT_NE(message.find(name), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    root = hopper();
    root[at] = "a word";
    EXPECT_NE(profile_error(root.dump()), "") << pointer;
  }
}

// A constant that no kernel can have is refused where it stands, and no arithmetic is done on it: a tile of no rows
// once ended the program by a signal, and a negative fraction of the bandwidth gave a step of minutes.
TEST(Profile, NumbersOutOfRangeAreNamed) {
  const std::pair<const char*, const char*> keys[] = {
      {"/gemm/tiles/0/rows", "gemm.tiles[0].rows: "},
      {"/gemm/tiles/0/columns", "gemm.tiles[0].columns: "},
      {"/gemm/tiles/0/efficiency", "gemm.tiles[0].efficiency: "},
      {"/gemm/prologue_us/value", "gemm.prologue_us.value: "},
      {"/gemm/smoothing/value", "gemm.smoothing.value: "},
      {"/gemm/batched_fraction/value", "gemm.batched_fraction.value: "},
      {"/gemm/grouped_fraction/value", "gemm.grouped_fraction.value: "},
      {"/gemm/exposed_result/value", "gemm.exposed_result.value: "},
      {"/gemm/narrow_gain/value", "gemm.narrow_gain.value: "},
      {"/gemm/four_bit_part/value", "gemm.four_bit_part.value: "},
      {"/attention/kernels/0/start_us/value", "attention.kernels[0].start_us.value: "},
      {"/attention/kernels/0/heads/0/head_dim", "attention.kernels[0].heads[0].head_dim: "},
      {"/attention/kernels/0/heads/0/forward_fraction", "attention.kernels[0].heads[0].forward_fraction: "},
      {"/attention/kernels/0/heads/0/backward_fraction", "attention.kernels[0].heads[0].backward_fraction: "},
      {"/attention/kernels/0/heads/0/forward_keys", "attention.kernels[0].heads[0].forward_keys: "},
      {"/attention/kernels/0/heads/0/backward_keys", "attention.kernels[0].heads[0].backward_keys: "},
      {"/memory/fraction/value", "memory.fraction.value: "},
      {"/memory/start_us/value", "memory.start_us.value: "},
      {"/kernel_gap_us/value", "kernel_gap_us.value: "},
      {"/vector_fraction/value", "vector_fraction.value: "},
      {"/contention/value", "contention.value: "},
      {"/spread/value", "spread.value: "}};
  for (const auto& [pointer, place] : keys) {
    for (const double value : {-1.0, 1e308}) {
      nlohmann::json root = hopper();
      root[nlohmann::json::json_pointer(pointer)] = value;
      const std::string message = profile_error(root.dump());
      EXPECT_NE(message.find(place), std::string::npos) << value << ": " << message;
      EXPECT_NE(message.find(" is not "), std::string::npos) << message;
    }
  }
  for (const char* pointer : {"/gemm/tiles/0/rows", "/gemm/tiles/0/columns", "/memory/fraction/value"}) {
    for (const double value : {0.0, 1e-308, 1e-9}) {
      nlohmann::json root = hopper();
      root[nlohmann::json::json_pointer(pointer)] = value;
      EXPECT_NE(profile_error(root.dump()), "") << pointer << " " << value;
    }
  }
}

TEST(Profile, WidthsOfHeadsAscend) {
  nlohmann::json root = hopper();
  nlohmann::json& heads = root["attention"]["kernels"][0]["heads"];
  heads[1]["head_dim"] = heads[0]["head_dim"];
  EXPECT_NE(profile_error(root.dump()).find("attention.kernels[0].heads[1].head_dim: is not above"), std::string::npos);
}

TEST(Profile, WhatIsNoJsonObjectIsRefused) {
  for (const char* text : {"", "{", "[1]", "3", "not json", "{\"gemm\": 3}"}) {
    const std::string message = profile_error(text);
    EXPECT_NE(message.find(".json:"), std::string::npos) << text;
    EXPECT_EQ(message.find('\n'), std::string::npos) << text;
  }
  EXPECT_THROW(load_profile("no/such/file.json"), Error);
}

TEST(Profile, HashTellsFilesApart) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("p.json");
  std::ofstream(path) << hopper().dump();
  const std::string first = load_profile(path).hash;
  nlohmann::json other = hopper();
  other["memory"]["fraction"]["value"] = 0.5;
  std::ofstream(path) << other.dump();
  EXPECT_NE(load_profile(path).hash, first);
}

}  // namespace
}  // namespace orrery
