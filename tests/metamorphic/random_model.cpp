#include "models/base/data.h"
#include "models/families/hugging_face.h"
#include "models/spec/model.h"
#include "models/spec/spec.h"
#include "tests/metamorphic/random_spec.h"

namespace orrery::test {
namespace {

constexpr std::int64_t kLargestModel = 50'000'000'000;  // parameters: a simulation of seconds at most

void add_experts(Draw& draw, Json& m) {
  Json moe = {{"experts", draw.of({4, 8, 16, 64})},
              {"top_k", draw.of({1, 2, 4})},
              {"feed_forward", draw.of({512, 1024, 2048})}};
  if (draw.chance(.3)) moe["shared_feed_forward"] = 1024;
  if (draw.chance(.3)) moe["first_layer"] = 1;
  if (draw.chance(.2)) moe["every"] = 2;
  if (draw.chance(.2)) moe["imbalance"] = draw.of<Json>({1.2, 2.0, Json::object({{"zipf", 0.5}})});
  if (draw.chance(.2)) {
    moe["capacity_factor"] = draw.of({1.0, 1.25, 2.0});
    moe["pad_to_capacity"] = draw.chance(.5);
  }
  if (draw.chance(.2)) moe["score"] = "sigmoid";
  if (draw.chance(.2)) moe["dispatch"] = "hierarchical";
  m["moe"] = moe;
}

void add_switches(Draw& draw, Json& m) {
  if (draw.chance(.3)) m["tied_embeddings"] = true;
  if (draw.chance(.3)) m["positions"] = draw.of({"learned", "alibi", "none"});
  if (draw.chance(.3)) m["norm"] = "layernorm";
  if (draw.chance(.3)) m["bias"] = true;
  if (draw.chance(.2)) m["dropout"] = 0.1;
  if (draw.chance(.1)) m["parallel_block"] = true;
  if (draw.chance(.1)) m["qk_norm"] = true;
  if (draw.chance(.1)) m["post_norms"] = true;
  if (draw.chance(.1)) m["sliding_window"] = {{"window", 512}, {"every", draw.of({1, 2})}};
  if (draw.chance(.05)) m["logit_softcap"] = 30;
  if (m.value("gated", true) && draw.chance(.05)) m["activation_clamp"] = 7;
}

void add_latent_attention(Draw& draw, Json& m) {
  m["mla"] = {{"q_lora_rank", draw.of({0, 512})},
              {"kv_lora_rank", 256},
              {"qk_nope_head_dim", 64},
              {"qk_rope_head_dim", 32},
              {"v_head_dim", 64}};
  m["positions"] = "rope";
  for (const char* key : {"kv_heads", "qk_norm", "sliding_window"}) m.erase(key);
}

std::vector<std::string> small_models() {
  std::vector<std::string> names;
  for (const std::string_view name : data_names("models")) {
    const Model m = find_model(name);
    if (parameter_count(m, 1024) <= kLargestModel) names.emplace_back(name);
  }
  return names;
}

}  // namespace

Json random_model(Draw& draw) {
  static const std::vector<std::string> kBuiltIn = small_models();
  if (draw.chance(.15)) return draw.from(kBuiltIn);
  const int heads = draw.of({4, 8, 16, 32}), dim = draw.of({64, 128});
  Json m = {{"layers", draw.of({2, 4, 6, 8, 12, 16, 24, 32})},
            {"hidden", heads * dim},
            {"heads", heads},
            {"feed_forward", draw.of({2, 3, 4}) * heads * dim},
            {"vocab", draw.of({1000, 32000, 50257, 128256})},
            {"gated", draw.chance(.6)}};
  if (draw.chance(.4)) m["kv_heads"] = std::min(heads, draw.of({1, 2, 4, 8}));
  add_switches(draw, m);
  if (draw.chance(.25)) {
    add_experts(draw, m);
    m.erase("parallel_block");
  }
  if (draw.chance(.1)) add_latent_attention(draw, m);
  if (draw.chance(.07)) {
    m["mtp_layers"] = 1;
    m.erase("positions");
  }
  return m;
}

}  // namespace orrery::test
