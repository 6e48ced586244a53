// This file runs the ops of a generation on the CPU that pass on its last rows and its tokens.
#include <algorithm>

#include "exec/host/host_call.h"
#include "kernels/cpu/token_choice.h"
#include "models/layers/blocks.h"

namespace orrery {
namespace {

// Copies the row of each sequence's last new token.
void copy_last_rows(const CpuCall& c) {
  const std::int64_t batch = c.rank.samples, tokens = c.sequence(), row = c.writes[0].bytes / batch;
  for (std::int64_t b = 0; b < batch; ++b)
    std::copy_n(c.reads[0].data + ((b + 1) * tokens - 1) * row, row, c.writes[0].data + b * row);
}

// Keeps the tokens that a pass chose. A pass over a part of the prompts chooses none.
void keep_chosen(const CpuCall& c, std::int64_t rows) {
  if (!c.pass().chooses(*c.rank.spec.generation)) return;
  const auto* keys = reinterpret_cast<const double*>(c.reads[0].data);
  GeneratedState& g = *c.state.generated;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto q = static_cast<std::size_t>(c.sequence_of(r));
    const std::int64_t token = kernels::token_of(keys[r]);
    g.chosen[q].push_back(token);
    g.tokens[q].push_back(g.follows.empty() ? token : g.follows[q].at(g.tokens[q].size()));
  }
}

void keep_received(const CpuCall& c, std::int64_t rows) {
  const std::int64_t* tokens = CpuCall::integers(c.reads[0]);
  for (std::int64_t r = 0; r < rows; ++r)
    c.state.generated->tokens[static_cast<std::size_t>(c.sequence_of(r))].push_back(tokens[r]);
}

// Keeps the logits of tokens of the vocabulary for a comparison; some columns may stand for no token.
void keep_logits(const CpuCall& c, const Values& logits, const CrossEntropy& e, std::int64_t first) {
  GeneratedState& g = *c.state.generated;
  if (!g.keeps_logits || !c.pass().chooses(*c.rank.spec.generation)) return;
  const std::int64_t columns = std::clamp<std::int64_t>(c.rank.spec.model.vocab - first, 0, e.columns);
  for (std::int64_t r = 0; r < e.rows; ++r) {
    const std::int64_t sequence = c.sequence_of(r);
    const auto position = c.pass().cached + c.pass().tokens - c.rank.spec.generation->input;
    if (sequence >= kKeptSequences || position >= kKeptTokens) continue;
    const float* row = logits.data() + r * e.columns;
    g.logits.push_back({sequence, position, {row, row + columns}});
  }
}

}  // namespace

void run_token_choice(const CpuCall& c, const CrossEntropy& e) {
  const Values logits = c.read(c.reads[0], e.rows * e.columns);
  const std::int64_t first = first_token(c, e.over, e.columns);
  keep_logits(c, logits, e, first);
  kernels::best_tokens(kernels::matrix<const float>(logits.data(), e.rows, e.columns), {first, c.rank.spec.model.vocab},
                       reinterpret_cast<double*>(c.writes[0].data));
}

void run_pass_cast(const CpuCall& c, const Cast& work) {
  const BlockRole role = c.rank.plan.blocks[c.frame.block].role;
  const bool stores = !c.updates.empty() && c.updates[0].operand.scope == Scope::state;
  // the key of the index is the only one that is a buffer of its own
  const bool index = c.rank.spec.model.indexer && c.reads.size() == 1;
  if (stores) return index ? run_store_index_keys(c) : run_store_keys(c);
  if (role == BlockRole::exchange) return keep_received(c, work.elements);
  if (role == BlockRole::output) return c.writes.empty() ? keep_chosen(c, work.elements) : copy_last_rows(c);
  run_cast(c, work);
}

}  // namespace orrery
