#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/error.h"
#include "models/families/hugging_face.h"
#include "models/spec/spec.h"

namespace orrery {
namespace {

using nlohmann::json;

json built_in(const char* name) { return json::parse(data_file(std::string("models/") + name + ".json")); }

Model with(json config, const json& changes) {
  config.merge_patch(changes);  // null removes a key
  return parse_hugging_face(config.dump(), "config.json");
}

std::string refusal_of(const std::string& text) {
  try {
    parse_hugging_face(text, "config.json");
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(HuggingFace, ReadsFamilyHabitsThatFilesLeaveOut) {
  EXPECT_TRUE(find_model("gpt2").tied_embeddings);
  EXPECT_TRUE(find_model("gemma-2b").tied_embeddings);
  EXPECT_FALSE(find_model("llama-3.1-8b").tied_embeddings);
  EXPECT_EQ(find_model("gpt2").feed_forward, 3072);
  EXPECT_EQ(with(built_in("gemma-7b"), {{"head_dim", nullptr}}).head_dim, 256);
  EXPECT_EQ(with(built_in("qwen3-0.6b"), {{"head_dim", nullptr}}).head_dim, 128);
  EXPECT_EQ(with(built_in("llama-3.1-8b"), {{"head_dim", nullptr}}).head_dim, 128);
  EXPECT_EQ(with(built_in("llama-2-7b"), {{"num_key_value_heads", nullptr}}).kv_heads, 32);
  EXPECT_EQ(with(built_in("mistral-7b-v0.3"), {{"num_key_value_heads", nullptr}}).kv_heads, 8);
  EXPECT_TRUE(find_model("qwen2.5-7b").qkv_bias);
  EXPECT_TRUE(find_model("qwen3-8b").qk_norm);
  EXPECT_TRUE(find_model("gemma-2-9b").post_norms);
  EXPECT_EQ(find_model("gemma-2-9b").logit_softcap, 30);
  EXPECT_EQ(find_model("gemma-2-9b").attention_softcap, 50);
  EXPECT_EQ(with(built_in("gemma-2-9b"), {{"final_logit_softcapping", nullptr}}).logit_softcap, 30);
  EXPECT_EQ(find_model("gemma-3-1b").logit_softcap, 0);
  EXPECT_TRUE(find_model("gemma-3-1b").scaled_embedding);
  EXPECT_EQ(find_model("deepseek-v3").head_dim, 192);
  EXPECT_EQ(find_model("deepseek-v3").mtp_layers, 1);
  EXPECT_EQ(find_model("deepseek-v2-lite").mla->q_lora_rank, 0);
}

TEST(HuggingFace, ReadsSlidingWindows) {
  const json mistral = built_in("mistral-7b-v0.3");  // the config says null: no window
  EXPECT_FALSE(find_model("mistral-7b-v0.3").sliding_window);
  EXPECT_EQ(with(mistral, {{"sliding_window", 4096}}).sliding_window->window, 4096);
  EXPECT_EQ(with(mistral, {{"sliding_window", nullptr}}).sliding_window->window, 4096);  // absent: the class's default
  EXPECT_EQ(find_model("gemma-2-2b").sliding_window->every, 2);
  EXPECT_EQ(find_model("gemma-3-1b").sliding_window->every, 6);
  EXPECT_EQ(find_model("gemma-3-1b").sliding_window->window, 512);
  json kinds = json::array();
  for (int i = 0; i < 26; ++i) kinds.push_back(i % 3 == 2 ? "full_attention" : "sliding_attention");
  EXPECT_EQ(with(built_in("gemma-3-1b"), {{"layer_types", kinds}}).sliding_window->every, 3);
  const json qwen = built_in("qwen2.5-7b");
  EXPECT_FALSE(with(qwen, {{"sliding_window", 4096}}).sliding_window);
  EXPECT_FALSE(
      with(qwen, {{"use_sliding_window", true}, {"sliding_window", 9}, {"max_window_layers", 28}}).sliding_window);
  EXPECT_TRUE(
      with(qwen, {{"use_sliding_window", true}, {"sliding_window", 9}, {"max_window_layers", 0}}).sliding_window);
}

TEST(HuggingFace, ReadsWhichLayersHaveExperts) {
  const Model v3 = find_model("deepseek-v3");
  EXPECT_FALSE(has_experts(v3, 2));
  EXPECT_TRUE(has_experts(v3, 3));
  EXPECT_TRUE(v3.moe->sigmoid_scores && v3.moe->correction_bias);
  EXPECT_FALSE(find_model("deepseek-v2").moe->sigmoid_scores);
  const Model sparse = with(built_in("deepseek-v3"), {{"moe_layer_freq", 4}});
  EXPECT_EQ(sparse.moe->first_layer, 4);
  EXPECT_EQ(sparse.moe->every, 4);
  const json qwen = built_in("qwen1.5-moe-a2.7b");
  EXPECT_TRUE(find_model("qwen1.5-moe-a2.7b").moe->shared_gate);
  const Model stepped = with(qwen, {{"decoder_sparse_step", 2}});
  EXPECT_FALSE(has_experts(stepped, 0));
  EXPECT_TRUE(has_experts(stepped, 1));
  EXPECT_EQ(with(qwen, {{"mlp_only_layers", {0, 1}}}).moe->first_layer, 2);
  EXPECT_FALSE(with(built_in("qwen3-30b-a3b"), {{"num_experts", 0}}).moe);
}

// Expert groups matter only if the choice of experts is limited by them: V2's config says so, for V3 it is the default.
TEST(HuggingFace, ReadsGroupsOfExperts) {
  for (const auto& [name, groups, top] : {std::tuple{"deepseek-v2", 8, 3}, {"deepseek-v3", 8, 4}}) {
    EXPECT_EQ(find_model(name).moe->expert_groups, groups) << name;
    EXPECT_EQ(find_model(name).moe->top_groups, top) << name;
    const Model greedy = with(built_in(name), {{"topk_method", "greedy"}});
    EXPECT_EQ(greedy.moe->expert_groups, 1) << name;
    EXPECT_EQ(greedy.moe->top_groups, 1) << name;
    EXPECT_EQ(with(built_in(name), {{"n_group", nullptr}, {"topk_group", nullptr}}).moe->expert_groups, 1) << name;
  }
  EXPECT_EQ(find_model("deepseek-v2-lite").moe->expert_groups, 1);
}

TEST(HuggingFace, ReadsSpellingsSeenInTheWild) {
  json config = built_in("deepseek-v3");
  config["num_routed_experts"] = config["n_routed_experts"];
  config.erase("n_routed_experts");
  EXPECT_EQ(parse_hugging_face(config.dump(), "c.json").moe->experts, 256);
  json nested = {{"model_type", "gemma3"}, {"text_config", built_in("gemma-3-1b")}};
  EXPECT_EQ(parse_hugging_face(nested.dump(), "c.json").layers, 26);
  EXPECT_EQ(with(built_in("llama-3.1-8b"), {{"model_type", nullptr}}).hidden, 4096);
  EXPECT_EQ(with(built_in("llama-3.1-8b"), {{"_name_or_path", "my/llama"}}).name, "my/llama");
}

TEST(HuggingFace, RefusesWhatItCannotRead) {
  const auto changed = [](const char* name, const json& changes) {
    json config = built_in(name);
    config.merge_patch(changes);
    return refusal_of(config.dump());
  };
  const std::pair<std::string, std::string> cases[] = {
      {refusal_of(""), "config.json:1: is no JSON"},
      {refusal_of("{\n\"a\": 1,\n}"), "config.json:3: is no JSON"},
      {refusal_of("{\"a\": 1e999}"), "a number in it is too large"},
      {refusal_of("[1]"), "an object {...} is needed"},
      {refusal_of("{}"), "model_type: unknown family"},
      {refusal_of(std::string(200'000, '[')), "config.json:1: nested deeper"},
      {changed("gpt2", {{"model_type", "zyxwvuts"}}), "unknown family zyxwvuts; known: gpt2, gpt_bigcode"},
      {changed("gpt2", {{"model_type", "lama"}}), "did you mean llama?"},
      {changed("gpt2", {{"model_type", 3}}), "model_type: 3 is not a name"},
      {changed("gpt2", {{"n_embd", nullptr}}), "hidden_size: missing (or n_embd, d_model, n_embed)"},
      {changed("llama-3.1-8b", {{"hidden_size", nullptr}}), "hidden_size: missing"},
      {changed("llama-3.1-8b", {{"vocab_size", nullptr}}), "vocab_size: missing"},
      {changed("llama-3.1-8b", {{"hidden_size", "4096"}}), "hidden_size: \"4096\" is not a sensible whole number"},
      {changed("llama-3.1-8b", {{"hidden_size", -1}}), "hidden_size: -1"},
      {changed("llama-3.1-8b", {{"hidden_size", 4096.5}}), "hidden_size: 4096.5"},
      {changed("llama-3.1-8b", {{"hidden_size", 1e18}}), "hidden_size: 1e+18"},
      {changed("llama-3.1-8b", {{"num_hidden_layers", 0}}), "layers: 0 is not between 1"},
      {changed("llama-3.1-8b", {{"num_hidden_layers", 1e14}}), "layers: 100000000000000"},
      {changed("llama-3.1-8b", {{"num_attention_heads", 0}}), "heads: 0"},
      {changed("llama-3.1-8b", {{"num_key_value_heads", 5}}), "heads: 32 is not a multiple of kv_heads: 5"},
      {changed("llama-3.1-8b", {{"tie_word_embeddings", 1}}), "tie_word_embeddings: 1 is not true or false"},
      {changed("mixtral-8x7b", {{"num_experts_per_tok", 9}}), "moe.top_k: 9"},
      {changed("mixtral-8x7b", {{"num_experts_per_tok", nullptr}}), "num_experts_per_tok: missing"},
      {changed("deepseek-v3", {{"kv_lora_rank", nullptr}}), "kv_lora_rank: missing"},
      {changed("deepseek-v3", {{"n_group", 7}}), "moe.expert_groups: 7 does not divide experts: 256"},
      {changed("deepseek-v3", {{"topk_group", 9}}), "moe.top_groups: 9"},
      {changed("deepseek-v3", {{"n_group", 64}, {"topk_group", 1}}), "moe.top_groups: 1 have fewer experts than top_k"},
      {changed("deepseek-v3", {{"topk_method", "nearest"}}), "topk_method"},
      {changed("qwen3-30b-a3b", {{"mlp_only_layers", {5, 48}}}), "mlp_only_layers: holds what is no layer's number"},
      {changed("qwen3-30b-a3b", {{"mlp_only_layers", 5}}), "mlp_only_layers: a list of layers is needed"},
      {changed("llama-3.1-8b", {{"num_experts", 4}}), "num_experts: this family has no experts"},
      {changed("llama-3.1-8b", {{"num_attention_heads", 30}}), "head_dim: missing, and 30 heads do not divide 4096"},
      {changed("llama-3.1-8b", {{"intermediate_size", {1, 2}}}), "intermediate_size: a list"},
      {changed("deepseek-v3", {{"attention_bias", true}}), "attention_bias: true: biases of latent attention"},
  };
  for (const auto& [message, expected] : cases) {
    EXPECT_NE(message.find(expected), std::string::npos) << expected << "\n  got: " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace orrery
