#include "models/layers/expert_sizes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "models/cost/generation_figures.h"

namespace orrery {
namespace {

double real(std::int64_t x) { return static_cast<double>(x); }

// Returns, for each expert, its fraction of all (token, expert) choices of the router. With `imbalance` the busiest
// experts are those on the first rank. If a fixed table assigns experts to tokens (hash routing), all experts are taken
// to be loaded alike, unless counts are given.
std::vector<double> loads(const Model& model, std::int64_t layer, std::int64_t ranks) {
  const Moe& moe = *model.moe;
  std::vector<double> parts(static_cast<std::size_t>(moe.experts), 1);
  const auto local = static_cast<std::size_t>(moe.experts / ranks);
  if (moe.loads) {
    const auto row = static_cast<std::size_t>(experts_before(model, layer));
    parts = (*moe.loads)[std::min(row, moe.loads->size() - 1)];
  } else if (is_hashed(model, layer)) {
    std::fill(parts.begin(), parts.end(), 1);
  } else if (moe.zipf) {
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = std::pow(static_cast<double>(i + 1), -*moe.zipf);
  } else if (ranks > 1) {
    const double busy = std::min(moe.imbalance, real(ranks));
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = i < local ? busy : (real(ranks) - busy) / real(ranks - 1);
  }
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  for (double& p : parts) p /= sum;
  return parts;
}

// For each expert, how popular it is; the numbers sum to 1.
std::vector<double> popularities(const Moe& moe) {
  std::vector<double> shares(static_cast<std::size_t>(moe.experts), 0);
  if (moe.loads) {
    for (const std::vector<double>& row : *moe.loads) {
      const double all = std::accumulate(row.begin(), row.end(), 0.0);
      for (std::size_t e = 0; all > 0 && e < shares.size(); ++e) shares[e] += row[e] / all;
    }
  } else {
    const double zipf = moe.zipf.value_or(generation_figures().expert_zipf);
    for (std::size_t e = 0; e < shares.size(); ++e) shares[e] = std::pow(static_cast<double>(e + 1), -zipf);
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& s : shares) s /= sum;
  return shares;
}

// Returns the number `a` for which a token that chooses expert e with the probability 1 - exp(-a * share) chooses
// top_k experts in the mean, as if experts were drawn until top_k different ones have come. It grows with a.
double draws(const std::vector<double>& shares, double top_k) {
  const auto chosen = [&](double a) {
    double sum = 0;
    for (const double s : shares) sum -= std::expm1(-a * s);
    return sum;
  };
  double low = 0, high = top_k;
  while (chosen(high) < top_k && high < 1e12) high *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (chosen(middle) < top_k ? low : high) = middle;
  }
  return high;
}

}  // namespace

ExpertSizes expert_sizes(const Spec& spec, std::int64_t layer, std::int64_t tokens, ExpertLoad load) {
  const Moe& moe = *spec.model.moe;
  ExpertSizes s;
  s.experts = moe.experts;
  s.ranks = spec.strategy.expert;
  s.cut = spec.strategy.expert_tensor;
  s.local = s.experts / s.ranks;
  s.tokens = tokens;
  s.top_k = moe.top_k;
  s.hashed = is_hashed(spec.model, layer);
  const std::int64_t choices = tokens * moe.top_k;
  if (moe.capacity_factor)
    s.capacity = static_cast<std::int64_t>(std::ceil(*moe.capacity_factor * real(choices) / real(s.experts)));
  s.padded = s.capacity > 0 && moe.pad_to_capacity;
  // The greatest number of (token, expert) choices, over the tokens of one rank, that one expert accepts.
  const std::int64_t room = s.capacity > 0 ? s.capacity : tokens;
  s.sent_bound = std::min(choices, s.experts * room);
  s.received_bound = s.ranks * std::min(tokens * std::min(moe.top_k, s.local), s.local * room);
  if (s.padded) {
    s.sent = s.sent_bound = s.received = s.received_bound = s.moved = s.experts * s.capacity;
    return s;
  }
  const std::vector<double> parts = loads(spec.model, layer, s.ranks);
  double all = 0, most = 0;
  for (std::int64_t r = 0; r < s.ranks; ++r) {
    double of_rank = 0;
    for (std::int64_t i = r * s.local; i < (r + 1) * s.local; ++i)
      of_rank += std::min(parts[static_cast<std::size_t>(i)] * real(choices), real(room));
    all += of_rank;
    most = std::max(most, of_rank);
  }
  s.sent = std::min(s.sent_bound, static_cast<std::int64_t>(std::llround(all)));
  s.received = std::min(s.received_bound, static_cast<std::int64_t>(std::llround(most * real(s.ranks))));
  s.received = std::max<std::int64_t>(s.received, 1);
  s.moved = std::max(s.sent, s.received);
  if (load == ExpertLoad::others && s.ranks > 1)
    s.received = std::max<std::int64_t>(1, std::llround((all - most) * real(s.ranks) / real(s.ranks - 1)));
  return s;
}

double experts_met(const Moe& moe, double tokens) {
  const std::vector<double> shares = popularities(moe);
  const double some = static_cast<double>(std::count_if(shares.begin(), shares.end(), [](double s) { return s > 0; }));
  if (static_cast<double>(moe.top_k) >= some) return some;
  const double a = draws(shares, static_cast<double>(moe.top_k));
  double met = 0;
  for (const double s : shares) met -= std::expm1(-a * s * tokens);
  return met;
}

bool prefers_some(const Moe& moe) { return moe.zipf.value_or(generation_figures().expert_zipf) > 0; }

std::int64_t local_experts_met(const Moe& moe, std::int64_t local, double tokens) {
  const double met = experts_met(moe, tokens) * static_cast<double>(local) / static_cast<double>(moe.experts);
  return std::clamp<std::int64_t>(std::llround(met), 1, local);
}

std::int64_t experts_with_rows(const Spec& spec, const ExpertSizes& s) {
  if (!spec.generation || s.padded) return s.local;
  return local_experts_met(*spec.model.moe, s.local, real(s.tokens * s.sources()));
}

static double binomial(std::int64_t n, std::int64_t k) {
  double ways = k > n ? 0 : 1;
  for (std::int64_t i = 0; i < k && ways > 0; ++i) ways *= static_cast<double>(n - i) / static_cast<double>(i + 1);
  return ways;
}

// Returns the probability that at least one of a token's experts has a number in [begin, end), if its top_k experts are
// drawn at random from `top` groups of experts, which are drawn at random too.
static double part_met(const Moe& moe, double begin, double end) {
  const std::int64_t groups = moe.expert_groups, top = moe.top_groups;
  const double each = static_cast<double>(moe.experts) / static_cast<double>(groups);
  std::int64_t whole = 0;
  // for each group of experts that lies partly in [begin, end) (at most two groups), the number of its experts in
  // [begin, end)
  std::vector<double> rest;
  for (std::int64_t g = 0; g < groups; ++g) {
    const double own =
        std::min(end, each * static_cast<double>(g + 1)) - std::max(begin, each * static_cast<double>(g));
    if (own > each - 1e-9)
      ++whole;
    else if (own > 1e-9)
      rest.push_back(own);
  }
  const auto others = groups - whole - static_cast<std::int64_t>(rest.size());
  double some = 0;
  for (std::size_t taken = 0; taken < std::size_t{1} << rest.size(); ++taken) {
    double own = 0;
    std::int64_t count = 0;
    for (std::size_t r = 0; r < rest.size(); ++r) {
      if ((taken >> r & 1U) != 0) own += rest[r], ++count;
    }
    for (std::int64_t j = 0; j <= std::min(whole, top - count); ++j) {
      double none = 1;
      for (std::int64_t i = 0; i < moe.top_k; ++i) {
        const double left = each * static_cast<double>(top) - static_cast<double>(i);
        none *= std::max(0.0, left - own - each * static_cast<double>(j)) / left;
      }
      some += binomial(whole, j) * binomial(others, top - count - j) / binomial(groups, top) * (1 - none);
    }
  }
  return some;
}

double parts_met(const Moe& moe, double parts) {
  const auto all = static_cast<double>(moe.experts);
  const auto count = std::max<std::int64_t>(1, std::llround(parts));
  double sum = 0;
  for (std::int64_t p = 0; p < count; ++p)
    sum += part_met(moe, all * static_cast<double>(p) / static_cast<double>(count),
                    all * static_cast<double>(p + 1) / static_cast<double>(count));
  return sum / static_cast<double>(moe.top_k);
}

bool fuses_experts(const Spec& spec) {
  return spec.software.kernels.fused_experts && spec.strategy.precision == Precision::mxfp8 && spec.model.gated &&
         spec.cluster.gpu.compute_capability / 10 == 10;
}

}  // namespace orrery
