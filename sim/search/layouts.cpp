// This file lists the combinations of parallel degrees (RankLayout) of a search space that obey the rules of
// models/load/check.cpp. The rules about the model are checked later, with the costs of its blocks
// (ModelCost::possible).
#include <numeric>

#include "models/load/second_features.h"
#include "models/spec/sequence.h"
#include "models/spec/vision.h"
#include "sim/parallel/large_pages.h"
#include "sim/search/space.h"

namespace orrery {

bool Space::can_cut(const RankLayout& l) const {
  Strategy s = base_.strategy;
  s.tensor = l.tensor;
  s.context = l.context;
  set_context_kind(s, l.context_kind);
  if (!broken_cut(s, base_.model, base_.sequence).empty()) return false;
  return !base_.images || (l.context == 1 && broken_encoder_cut(*base_.model.vision, l.tensor).empty());
}

std::vector<RankLayout> Space::layouts() const {
  // Models with experts on thousands of GPUs have millions of RankLayouts. These are counted first, so that memory is
  // allocated only once.
  std::size_t count = 0;
  each_layout([&](const RankLayout&) { ++count; });
  std::vector<RankLayout> result;
  result.reserve(count);
  ask_for_large_pages(result.data(), count * sizeof(RankLayout));
  each_layout([&](const RankLayout& l) { result.push_back(l); });
  return result;
}

// Lists tensor, context, pipeline and data degrees, and kinds of context parallelism.
template <class Take>
void Space::each_mesh(const Take& take) const {
  const Model& m = base_.model;
  for (const std::int64_t t : divisors(gpus_)) {
    if (!tensor_.admits(t) || m.heads % t != 0) continue;
    for (const std::int64_t c : divisors(gpus_ / t)) {
      if (!context_.admits(c) || base_.sequence % c != 0) continue;
      std::vector<std::string_view> kinds{"ring"};
      if (c > 1) kinds.assign(kContextKinds.begin(), kContextKinds.end());
      if (c > 1 && !context_kind_.open) kinds.assign(context_kind_.values.begin(), context_kind_.values.end());
      for (const std::int64_t p : divisors(gpus_ / t / c)) {
        const std::int64_t d = gpus_ / t / c / p;
        if (!pipeline_.admits(p) || p > m.layers + 2 || !data_.admits(d)) continue;
        if (base_.strategy.global_batch % d != 0) continue;
        RankLayout l{.tensor = t, .context = c, .pipeline = p, .data = d};
        for (const std::string_view kind : kinds) {
          l.context_kind = kind;
          if (can_cut(l)) take(l);
        }
      }
    }
  }
}

template <class Take>
void Space::each_placement_of_experts(RankLayout l, const Take& take) const {
  // Ranks share out the experts of both models of a step alike.
  std::int64_t experts = base_.model.moe ? base_.model.moe->experts : 0;
  if (base_.second && base_.second->model.moe) experts = std::gcd(experts, base_.second->model.moe->experts);
  for (const std::int64_t e : experts > 0 ? divisors(experts) : std::vector<std::int64_t>{1}) {
    for (const std::int64_t t : experts > 0 ? divisors(l.tensor) : std::vector<std::int64_t>{1}) {
      l.expert = e;
      l.expert_tensor = t;
      const bool fits = l.tensor * l.replicas() % (e * t) == 0;
      if (fits && expert_.admits(e) && expert_tensor_.admits(t)) take(l);
    }
  }
}

template <class Take>
void Space::each_overlap(RankLayout l, const Take& take) const {
  const bool shared = !feature::kNoSharedExpertsAtAll.asked(base_);
  for (const bool sequence : both(sequence_parallel_, l.tensor > 1, false)) {
    if (sequence && base_.sequence / l.context % l.tensor != 0) continue;
    l.sequence_parallel = sequence;
    for (const bool tensor : both(overlap_tensor_, l.tensor > 1 && sequence, false)) {
      l.overlap_tensor = tensor;
      for (const bool expert : both(overlap_expert_, shared, false)) {
        l.overlap_expert = expert;
        take(l);
      }
    }
  }
}

template <class Take>
void Space::each_layout(const Take& take) const {
  each_mesh([&](const RankLayout& mesh) {
    const std::int64_t of_replica = base_.strategy.global_batch / mesh.data;
    std::vector<std::int64_t> batches = divisors(of_replica);
    std::erase_if(batches, [&](std::int64_t b) {
      return !micro_batch_.admits(b) || of_replica / b > kMostLayerPasses / base_.model.layers;
    });
    each_placement_of_experts(mesh, [&](const RankLayout& experts) {
      each_overlap(experts, [&](RankLayout l) {
        for (const std::int64_t b : batches) {
          l.micro_batch = b;
          l.micro_batches = of_replica / b;
          take(l);
        }
      });
    });
  });
}

}  // namespace orrery
