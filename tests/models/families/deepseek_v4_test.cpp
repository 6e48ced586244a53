// DeepSeek-V4: counts of both published models, in both spellings of a file. The totals with the module of multi-token
// prediction, and the activated parameters, are those that a public reading of the published tensors states
// (nano-deepseek-v4-inspect: 290,942,289,362 and 14,118,225,362 for Flash, 1,598,837,347,742 and 50,648,438,174 for
// Pro); the model card rounds them to 284B, 13B, 1.6T and 49B.
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/families/family.h"
#include "models/families/hugging_face.h"

namespace orrery {
namespace {

std::int64_t counted(const std::vector<Parameter>& list) {
  std::int64_t sum = 0;
  for (const Parameter& p : list) sum += elements(p);
  return sum;
}

std::int64_t idle_in(const std::vector<Parameter>& list, std::int64_t top_k) {
  std::int64_t sum = 0;
  for (const Parameter& p : list) sum += p.experts > 0 ? elements(p) / p.experts * (p.experts - top_k) : 0;
  return sum;
}

struct PublishedV4 {
  const char* name;
  std::int64_t without_prediction, with_prediction, activated;
};

TEST(DeepSeekV4, CountsArePublishedOnes) {
  constexpr PublishedV4 kPublished[] = {
      {"deepseek-v4-flash", 284'332'240'471, 290'942'289'362, 14'118'225'362},
      {"deepseek-v4-pro", 1'572'997'201'763, 1'598'837'347'742, 50'648'438'174},
  };
  for (const PublishedV4& p : kPublished) {
    const Model m = find_model(p.name);
    const std::vector<Parameter> prediction = prediction_parameters(m);
    EXPECT_EQ(parameter_count(m, 1), p.without_prediction) << p.name;
    EXPECT_EQ(parameter_count(m, 1) + counted(prediction), p.with_prediction) << p.name;
    std::int64_t idle = idle_in(prediction, m.moe->top_k);
    for (std::int64_t layer = 0; layer < m.layers; ++layer) idle += idle_in(layer_parameters(m, layer), m.moe->top_k);
    EXPECT_EQ(p.with_prediction - idle, p.activated) << p.name;
  }
}

// The spelling of transformers, in which the family's class gives all other sizes of Flash.
std::string with_types(const std::string& more = "") {
  std::string types = R"("sliding_attention", "sliding_attention")", experts;
  for (int i = 2; i < 43; ++i)
    types += i % 2 == 0 ? R"(, "compressed_sparse_attention")" : R"(, "heavily_compressed_attention")";
  for (int i = 0; i < 43; ++i) experts += (i > 0 ? ", " : "") + std::string(i < 3 ? R"("hash_moe")" : R"("moe")");
  return R"({"model_type": "deepseek_v4", "hidden_size": 4096, "num_hidden_layers": 43, "num_attention_heads": 64,
             "vocab_size": 129280, "partial_rotary_factor": 0.125, "compress_rates": {"compressed_sparse_attention": 4,
             "heavily_compressed_attention": 128}, "layer_types": [)" +
         types + R"(], "mlp_layer_types": [)" + experts + "]" + more + "}";
}

TEST(DeepSeekV4, BothSpellingsAreOneModel) {
  const Model named = find_model("deepseek-v4-flash"), typed = parse_hugging_face(with_types(), "config.json");
  EXPECT_EQ(parameter_count(typed, 1), parameter_count(named, 1));
  EXPECT_EQ(typed.layer_kinds, named.layer_kinds);
  EXPECT_EQ(typed.moe->hash_layers, 3);
  EXPECT_EQ(typed.mtp_layers, 1);
  EXPECT_EQ(typed.compressed_attention->rope_head_dim, 64);
  EXPECT_EQ(typed.compressed_attention->window, 128);
  EXPECT_EQ(typed.hyper_connections->iterations, 20);
}

TEST(DeepSeekV4, LayersAreOfTheirKinds) {
  const Model m = find_model("deepseek-v4-flash");
  std::map<Mixer, int> kinds;
  for (std::int64_t i = 0; i < m.layers; ++i) ++kinds[layer_kind(m, i).mixer];
  EXPECT_EQ(kinds[Mixer::windowed], 2);
  EXPECT_EQ(kinds[Mixer::compressed_sparse], 21);
  EXPECT_EQ(kinds[Mixer::heavily_compressed], 20);
  EXPECT_EQ(layer_kind(m, prediction_layer(m)).mixer, Mixer::windowed);
  EXPECT_EQ(layer_kind(find_model("deepseek-v4-pro"), 0).mixer, Mixer::heavily_compressed);
  EXPECT_TRUE(is_hashed(m, 2) && !is_hashed(m, 3) && !is_hashed(m, prediction_layer(m)));
}

// A file that lists neither kinds nor ratios has those of the class in transformers.
TEST(DeepSeekV4, AbsentListsHaveTheDefaultsOfTheClass) {
  const Model m = parse_hugging_face(
      R"({"model_type": "deepseek_v4", "hidden_size": 4096, "num_hidden_layers": 5, "num_attention_heads": 64,
          "vocab_size": 129280})",
      "config.json");
  std::vector<Mixer> mixers;
  for (std::int64_t i = 0; i < m.layers; ++i) mixers.push_back(layer_kind(m, i).mixer);
  EXPECT_EQ(mixers, (std::vector<Mixer>{Mixer::heavily_compressed, Mixer::heavily_compressed, Mixer::heavily_compressed,
                                        Mixer::compressed_sparse, Mixer::heavily_compressed}));
  EXPECT_EQ(m.moe->hash_layers, 3);
}

TEST(DeepSeekV4, RefusesWhatIsNotSoBuilt) {
  const auto refusal = [](const std::string& more) {
    const std::string sizes =
        R"({"model_type": "deepseek_v4", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 8,
            "vocab_size": 256, )";
    try {
      parse_hugging_face(sizes + more + "}", "config.json");
      return std::string();
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  const auto says = [&](const std::string& more, const char* what) {
    EXPECT_NE(refusal(more).find(what), std::string::npos) << refusal(more);
  };
  says(R"("compress_ratios": [0])", "compress_ratios: a list of 2 entries");
  says(R"("compress_ratios": [64, 128])", "layer 1: 128 beside 64");
  says(R"("compress_ratios": ["a", 4])", "is no number of tokens");
  says(R"("layer_types": ["sliding_attention", "full_attention"])", "layer 1: \"full_attention\": kinds are");
  says(R"("mlp_layer_types": ["moe", "hash_moe"])", "hash_moe after other layers");
  says(R"("mlp_layer_types": ["moe", "dense"])", "kinds are hash_moe and moe");
  says(R"("hc_mult": 1)", "hc_mult: such a file");
  says(R"("o_groups": 3)", "output_groups: 3 does not divide heads: 8");
}

}  // namespace
}  // namespace orrery
