// Text that CPU ranks generate, against the forward pass of the whole text so far for every token.
#include "models/generation/generation_plan.h"
#include "tests/exec/strategy_run.h"

namespace orrery {
namespace {

using namespace test;

constexpr std::int64_t kSequences = 4, kPromptTokens = 24, kNewTokens = 8;

struct GenerationCase {
  std::string model, strategy;
  std::string generate = "";
  // what the reference has too: a key of strategy, and a key of generate
  std::string quantise = "", cache = "";
};

void PrintTo(const GenerationCase& c, std::ostream* out) {
  *out << c.model.substr(0, c.model.find(',')) << ", " << c.strategy << ", " << c.generate << ", " << c.quantise << ", "
       << c.cache;
}

using Texts = std::map<std::int64_t, std::vector<std::int64_t>>;  // tokens by number of the sequence

Spec generating(const std::string& model, const std::string& strategy, const std::string& generate,
                std::int64_t input = kPromptTokens, std::int64_t output = kNewTokens) {
  return parse_spec(
      fmt::format(
          "model: {}\nworkload: generate\ngenerate: {{batch: {}, input: {}, output: {}{}}}\ncluster: {{node: "
          "dgx-h100, nodes: 8}}\nsoftware: vllm\nstrategy: {{precision: fp32{}}}\n",
          model, kSequences, input, output, generate.empty() ? "" : ", " + generate,
          (strategy.find("data:") == std::string::npos ? ", data: 1" : "") + (strategy.empty() ? "" : ", " + strategy)),
      "case");
}

// Two lists of keys as one.
std::string joined(const std::string& a, const std::string& b) { return a + (a.empty() || b.empty() ? "" : ", ") + b; }

Text prompts_of(const Spec& spec) {
  return read_text(ORRERY_SOURCE_DIR "/exec/program/data/text.txt", spec.model.vocab, kPromptTokens);
}

Execution generate(MPI_Comm world, const Spec& spec, const PromptReader& prompt = {},
                   const std::vector<GeneratedSequence>& follow = {}) {
  check_executable(spec);
  int number = 0;
  MPI_Comm_rank(world, &number);
  const Plan plan = make_executed_plan(spec);
  const Rank rank(spec, plan, number);
  const auto transport = mpi_transport(world, rank.plan);
  const Text text = prompts_of(spec);
  ExecuteOptions options;
  options.training.seed = 7;
  options.prompt = prompt;
  options.follow = follow;
  return execute(rank, *transport, text, options);
}

// The greedy tokens of one rank that computes the whole text so far again for each token.
const Texts& reference_texts(const std::string& model, const std::string& quantise = "",
                             const std::string& cache = "") {
  static std::map<std::string, Texts> known;
  const auto [it, fresh] = known.try_emplace(model + quantise + cache);
  if (!fresh) return it->second;
  Texts& texts = it->second;
  const Text prompts = prompts_of(generating(model, "", ""));
  for (std::int64_t made = 0; made < kNewTokens; ++made) {
    const Spec one = generating(model, quantise, cache, kPromptTokens + made, 1);
    const auto read = [&](std::int64_t sequence, std::int64_t first, std::int64_t count, std::int64_t* to) {
      std::vector<std::int64_t> all(static_cast<std::size_t>(kPromptTokens));
      prompts.copy(sequence, kPromptTokens, {0, kPromptTokens}, 0, all.data());
      const std::vector<std::int64_t>& more = texts[sequence];
      all.insert(all.end(), more.begin(), more.end());
      std::copy_n(all.begin() + first, count, to);
    };
    for (const GeneratedSequence& s : generate(MPI_COMM_SELF, one, read).generated)
      texts[s.number].push_back(s.tokens.at(0));
  }
  return texts;
}

// All ranks' sequences, on every rank; those that several ranks know must agree.
Texts gathered(MPI_Comm world, const Execution& mine) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(kSequences * kNewTokens), -1), most = all;
  for (const GeneratedSequence& s : mine.generated) {
    EXPECT_EQ(static_cast<std::int64_t>(s.tokens.size()), kNewTokens);
    std::copy(s.tokens.begin(), s.tokens.end(), all.begin() + s.number * kNewTokens);
  }
  MPI_Allreduce(all.data(), most.data(), static_cast<int>(all.size()), MPI_INT64_T, MPI_MAX, world);
  Texts texts;
  for (std::int64_t q = 0; q < kSequences; ++q)
    texts[q].assign(most.begin() + q * kNewTokens, most.begin() + (q + 1) * kNewTokens);
  for (const GeneratedSequence& s : mine.generated) EXPECT_EQ(texts[s.number], s.tokens);
  return texts;
}

// The text goes on with other tokens than those that are chosen: each choice is then that after a longer prompt.
TEST(FollowedText, HasTheChoicesAfterItsTokens) {
  const Spec spec = generating(kLlama, "tensor: 2, pipeline: 2", "chunk: 7");
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return;
  std::vector<GeneratedSequence> follow;
  for (std::int64_t q = 0; q < kSequences; ++q) {
    follow.push_back({q, {}});
    for (std::int64_t k = 0; k < kNewTokens; ++k) follow.back().tokens.push_back(1 + 10 * q + k);
  }
  const Texts chosen = gathered(some, generate(some, spec, {}, follow));
  int rank = 0;
  MPI_Comm_rank(some, &rank);
  MPI_Comm_free(&some);
  if (rank > 0) return;
  const Text prompts = prompts_of(spec);
  for (std::int64_t k = 0; k < kNewTokens; ++k) {
    const auto read = [&](std::int64_t sequence, std::int64_t first, std::int64_t count, std::int64_t* to) {
      std::vector<std::int64_t> all(static_cast<std::size_t>(kPromptTokens));
      prompts.copy(sequence, kPromptTokens, {0, kPromptTokens}, 0, all.data());
      const std::vector<std::int64_t>& more = follow[static_cast<std::size_t>(sequence)].tokens;
      all.insert(all.end(), more.begin(), more.begin() + k);
      std::copy_n(all.begin() + first, count, to);
    };
    for (const GeneratedSequence& s :
         generate(MPI_COMM_SELF, generating(kLlama, "", "", kPromptTokens + k, 1), read).generated)
      EXPECT_EQ(chosen.at(s.number).at(static_cast<std::size_t>(k)), s.tokens.at(0));
  }
}

class Generations : public testing::TestWithParam<GenerationCase> {};

TEST_P(Generations, HaveTheTokensOfFullForwards) {
  const GenerationCase& c = GetParam();
  const Spec spec = generating(c.model, joined(c.strategy, c.quantise), joined(c.generate, c.cache));
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return;
  const Texts texts = gathered(some, generate(some, spec));
  int rank = 0;
  MPI_Comm_rank(some, &rank);
  MPI_Comm_free(&some);
  if (rank > 0) return;
  EXPECT_EQ(texts, reference_texts(c.model, c.quantise, c.cache));
}

const std::string kServedLatent =
    "{name: tiny-latent, layers: 2, hidden: 64, heads: 4, feed_forward: 96, vocab: 250, mla: {q_lora_rank: 24, "
    "kv_lora_rank: 20, qk_nope_head_dim: 12, qk_rope_head_dim: 8, v_head_dim: 10}}";
const std::string kServedIndex =
    "{name: tiny-index, layers: 2, hidden: 64, heads: 4, feed_forward: 96, vocab: 250, mla: {q_lora_rank: 24, "
    "kv_lora_rank: 20, qk_nope_head_dim: 12, qk_rope_head_dim: 8, v_head_dim: 10}, indexer: {heads: 3, head_dim: 6, "
    "top_k: 9}}";
const std::string kServedDelta =
    "{name: tiny-delta, layers: 4, hidden: 64, heads: 4, kv_heads: 2, feed_forward: 96, vocab: 250, qk_norm: true, "
    "attention_gate: true, layer_kinds: [recurrence, recurrence, recurrence, attention], recurrence: {heads: 8, "
    "groups: 4, key_dim: 5, value_dim: 6}, moe: {experts: 8, top_k: 2, feed_forward: 48, shared_feed_forward: 32, "
    "shared_gate: true}}";
const std::string kServedSpace =
    "{name: tiny-space, layers: 5, hidden: 64, heads: 4, kv_heads: 2, feed_forward: 96, vocab: 250, gated: false, "
    "positions: none, layer_kinds: [recurrence_alone, feed_forward, recurrence_alone, attention_alone, feed_forward], "
    "recurrence: {rule: state_space, heads: 8, groups: 4, key_dim: 5, value_dim: 3, convolution_bias: true}}";
const std::string kEvenlyWide = "{name: tiny-wide, layers: 2, hidden: 64, heads: 4, feed_forward: 128, vocab: 250}";
const std::string kTwelve = "{name: tiny-twelve, layers: 2, hidden: 48, heads: 4, feed_forward: 96, vocab: 250}";
const std::string kServedExperts = with_experts("tiny-experts", "experts: 8, top_k: 2, feed_forward: 48");
const std::string kServedShared =
    with_experts("tiny-shared", "experts: 8, top_k: 2, feed_forward: 48, shared_feed_forward: 32, shared_gate: true");

const GenerationCase kGenerated[] = {
    {kLlama, ""},
    {kLlama, "", "chunk: 7"},
    {kLlama, "", "chunk: 8, kv_block: 4"},
    {kLlama, "", "kv_block: 1"},
    {kLlama, "tensor: 2"},
    {kLlama, "tensor: 4, data: 2", "chunk: 10, kv_block: 3"},
    {kLlama, "tensor: 8"},
    {kLlama, "data: 4"},
    {kLlama, "pipeline: 2"},
    {kLlama, "pipeline: 4", "chunk: 11"},
    {kLlama, "pipeline: 2, micro_batch: 1", "chunk: 16"},
    {kLlama, "pipeline: 4, micro_batch: 4"},
    {kLlama, "pipeline: 2, virtual_stages: 2, micro_batch: 2"},
    {kLlama, "tensor: 2, pipeline: 2, data: 2, micro_batch: 1", "chunk: 9, kv_block: 5"},
    {kGpt, "tensor: 2, pipeline: 2"},
    {kQwen, "tensor: 4", "chunk: 5"},
    {kQwen, "pipeline: 3, micro_batch: 2"},
    {kWindow, ""},
    {kWindow, "", "chunk: 5, kv_block: 4"},
    {kWindow, "tensor: 2, pipeline: 3", "chunk: 13, kv_block: 3"},
    {kServedLatent, "", "chunk: 6"},
    {kServedLatent, "tensor: 4", "chunk: 9, kv_block: 2"},
    {kServedLatent, "tensor: 2, pipeline: 2"},
    {kServedExperts, ""},
    {kServedExperts, "tensor: 2", "chunk: 8"},
    {kServedExperts, "tensor: 4, expert: 4"},
    {kServedExperts, "tensor: 4, expert: 2"},
    {kServedExperts, "data: 4, expert: 4"},
    {kServedExperts, "data: 2, expert: 2, pipeline: 2", "chunk: 7"},
    {kServedShared, "tensor: 2, expert: 2, pipeline: 2"},
    {kServedIndex, "", "chunk: 7"},
    {kServedIndex, "tensor: 4, data: 2", "chunk: 1, kv_block: 2"},
    {kServedIndex, "tensor: 2, pipeline: 2, micro_batch: 1", "chunk: 10, kv_block: 3"},
    {kServedDelta, "tensor: 4, expert: 2", "chunk: 1"},
    {kServedDelta, "data: 4, expert: 4", "chunk: 7"},
    {kServedDelta, "tensor: 2, expert: 2, pipeline: 2, micro_batch: 2", "chunk: 2, kv_block: 5"},
    {kServedSpace, "tensor: 4", "chunk: 9"},
    {kServedSpace, "pipeline: 2, micro_batch: 1", "chunk: 3"},
};
INSTANTIATE_TEST_SUITE_P(Layouts, Generations, testing::ValuesIn(kGenerated));

constexpr char kInFp8[] = "quantise: {weights: fp8}", kInInt8[] = "quantise: {weights: int8}",
               kInInt4[] = "quantise: {weights: int4, group: 8}", kInNvfp4[] = "quantise: {weights: nvfp4}",
               kWithZeros[] = "quantise: {weights: int4, group: 12, zero_points: true}",
               kClippedInt8[] = "quantise: {weights: int8, group: tensor, calibration: kl}",
               kInMxfp8[] = "quantise: {weights: mxfp8}", kInMxfp4[] = "quantise: {weights: mxfp4}",
               kExpertsInInt8[] = "quantise: {weights: int8, layers: experts}",
               kMlpInInt4[] = "quantise: {weights: int4, group: 8, layers: feed_forward}";

const GenerationCase kQuantised[] = {
    {kLlama, "", "chunk: 7", kInFp8},
    {kLlama, "tensor: 4", "chunk: 5, kv_block: 4", kInFp8},
    {kLlama, "tensor: 8", "", kInInt8},
    {kLlama, "tensor: 2, pipeline: 2, data: 2, micro_batch: 1", "chunk: 9, kv_block: 5", kInInt8},
    {kLlama, "tensor: 4, data: 2", "chunk: 10", kInInt4},
    {kLlama, "pipeline: 4", "chunk: 11", kInInt4},
    {kLlama, "tensor: 2", "", kInNvfp4},
    {kLlama, "pipeline: 2", "chunk: 6", kInNvfp4},
    {kEvenlyWide, "tensor: 2, pipeline: 2", "", kInMxfp8},
    {kEvenlyWide, "tensor: 2", "chunk: 6", kInMxfp4},
    {kEvenlyWide, "tensor: 4", "", kClippedInt8},
    {kEvenlyWide, "pipeline: 2", "chunk: 6", kClippedInt8},
    {kTwelve, "tensor: 2", "", kWithZeros},
    {kGpt, "tensor: 2, pipeline: 2", "", kInInt8},
    {kQwen, "tensor: 4", "chunk: 5", kInFp8},
    {kServedLatent, "tensor: 2, pipeline: 2", "chunk: 9", kInInt8},
    {kServedLatent, "tensor: 4", "", kInFp8},
    {kServedIndex, "tensor: 2", "chunk: 9", kInFp8},
    {kServedDelta, "tensor: 2, expert: 2", "chunk: 5", kInInt8, "kv_precision: int8"},
    {kServedExperts, "tensor: 4, expert: 4", "chunk: 8", kInFp8},
    {kServedExperts, "tensor: 4, expert: 2", "", kInInt8},
    {kServedExperts, "tensor: 2, expert: 2", "", kExpertsInInt8},
    {kServedShared, "tensor: 2", "", kMlpInInt4},
    {kServedExperts, "data: 2, expert: 2, pipeline: 2", "", kInInt4},
    {kLlama, "tensor: 4, data: 2", "chunk: 10, kv_block: 3", "", "kv_precision: int8"},
    {kLlama, "tensor: 2, pipeline: 2", "chunk: 7", "", "kv_precision: int4"},
    {kLlama, "tensor: 2", "kv_block: 1", "", "kv_precision: fp8"},
    {kLlama, "tensor: 2, pipeline: 2", "chunk: 7", "", "kv_precision: nvfp4"},
    {kWindow, "tensor: 2, pipeline: 3", "chunk: 13, kv_block: 3", "", "kv_precision: int8"},
    {kQwen, "pipeline: 3, micro_batch: 2", "chunk: 5", kInInt8, "kv_precision: int4"},
};
INSTANTIATE_TEST_SUITE_P(Quantised, Generations, testing::ValuesIn(kQuantised));

}  // namespace
}  // namespace orrery
