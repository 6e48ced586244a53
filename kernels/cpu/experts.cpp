#include "kernels/cpu/experts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

namespace orrery::kernels {
namespace {

void softmax_row(const float* x, std::int64_t n, float* y) {
  const float largest = *std::max_element(x, x + n);
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(y[i] = std::exp(x[i] - largest));
  for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(y[i] / sum);
}

void score(const float* logits, const GateShape& s, float* scores) {
  if (!s.sigmoid) return softmax_row(logits, s.experts, scores);
  for (std::int64_t i = 0; i < s.experts; ++i) scores[i] = 1 / (1 + std::exp(-logits[i]));
}

// Keeps the `count` indices, of experts or of groups of experts, that have the largest values, sorted by falling value;
// among equal values the lower index comes first.
void keep_largest(std::vector<std::int32_t>& numbers, std::int64_t count, const std::vector<float>& values) {
  std::partial_sort(numbers.begin(), numbers.begin() + count, numbers.end(), [&](std::int32_t a, std::int32_t b) {
    const float x = values[static_cast<std::size_t>(a)], y = values[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  });
  numbers.resize(static_cast<std::size_t>(count));
}

// Returns the experts among which a token chooses: those of the s.top_groups best groups of experts. Groups are
// compared by the largest value of their experts or, if a bias corrects the scores, by the sum of the two largest
// values.
std::vector<std::int32_t> candidates(const std::vector<float>& values, const GateShape& s, bool corrected) {
  const std::int64_t each = s.experts / s.expert_groups;
  std::vector<std::int32_t> groups(static_cast<std::size_t>(s.expert_groups)), experts;
  std::iota(groups.begin(), groups.end(), 0);
  std::vector<float> worth;
  for (std::int64_t g = 0; g < s.expert_groups; ++g) {
    std::vector<float> own(values.begin() + g * each, values.begin() + (g + 1) * each);
    std::partial_sort(own.begin(), own.begin() + std::min<std::int64_t>(2, each), own.end(), std::greater<>());
    worth.push_back(own[0] + (corrected && each > 1 ? own[1] : 0));
  }
  keep_largest(groups, s.top_groups, worth);
  for (const std::int32_t g : groups) {
    for (std::int64_t i = 0; i < each; ++i) experts.push_back(static_cast<std::int32_t>(g * each + i));
  }
  return experts;
}

// Chooses the top_k experts of a token, sorted by falling score.
void choose(const float* scores, const GateShape& s, const float* bias, std::int32_t* chosen) {
  std::vector<float> values(scores, scores + s.experts);
  for (std::int64_t e = 0; bias != nullptr && e < s.experts; ++e) values[static_cast<std::size_t>(e)] += bias[e];
  std::vector<std::int32_t> order = candidates(values, s, bias != nullptr);
  keep_largest(order, s.top_k, values);
  std::copy(order.begin(), order.end(), chosen);
}

double chosen_sum(const float* scores, const std::int32_t* chosen, std::int64_t top_k) {
  double sum = 0;
  for (std::int64_t j = 0; j < top_k; ++j) sum += static_cast<double>(scores[chosen[j]]);
  return sum;
}

// Assigns a row in the experts' input to every choice (token, expert) that the capacity does not drop, and counts the
// rows of each expert.
void place(std::int64_t tokens, const GateShape& s, const Routing& r) {
  const std::int64_t choices = tokens * s.top_k, of_group = choices / s.groups;
  std::vector<std::int64_t> taken(static_cast<std::size_t>(s.experts * s.groups));
  for (std::int64_t c = 0; c < choices; ++c) {
    std::int64_t& n = taken[static_cast<std::size_t>(r.experts[c] * s.groups + c / of_group)];
    const bool fits = s.capacity == 0 || n < s.capacity;
    r.places[c] = fits ? static_cast<std::int32_t>(n++) : -1;
  }
  std::vector<std::int64_t> first(taken.size());
  std::int64_t next = 0;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    first[i] = next;
    next += s.padded ? s.capacity : taken[i];
  }
  for (std::int64_t e = 0; e < s.experts; ++e) {
    const std::int64_t end = e + 1 < s.experts ? first[static_cast<std::size_t>((e + 1) * s.groups)] : next;
    r.counts[e] = static_cast<std::int32_t>(end - first[static_cast<std::size_t>(e * s.groups)]);
  }
  for (std::int64_t c = 0; c < choices; ++c) {
    if (r.places[c] >= 0)
      r.places[c] += static_cast<std::int32_t>(first[static_cast<std::size_t>(r.experts[c] * s.groups + c / of_group)]);
    else
      r.weights[c] = 0;
  }
}

// Returns the gradient of the auxiliary (load-balancing) loss of `tokens` tokens with respect to each expert's score:
// scale * aux_loss * experts * the expert's share of the choices.
std::vector<double> load_gradient(const float* counts, const GateShape& s, std::int64_t tokens, double scale) {
  std::vector<double> g(counts, counts + s.experts);
  const double each = scale * s.aux_loss * static_cast<double>(s.experts) / static_cast<double>(tokens * s.top_k);
  for (double& x : g) x *= each;
  return g;
}

// Turns the gradient of one token's scores into the gradient of its logits. `load` is the gradient of the auxiliary
// loss, in which sigmoid scores are divided by their sum over the experts.
void score_gradient(const float* scores, const GateShape& s, std::vector<double>& g, const std::vector<double>& load,
                    float* dlogits) {
  const auto n = static_cast<std::size_t>(s.experts);
  const double sum = s.sigmoid ? std::accumulate(scores, scores + n, 0.0) : 1;
  double mean = 0;
  for (std::size_t i = 0; i < n; ++i) mean += load[i] * static_cast<double>(scores[i]) / sum;
  for (std::size_t i = 0; i < n; ++i) g[i] += s.sigmoid ? (load[i] - mean) / sum : load[i];
  double dot = 0;
  for (std::size_t i = 0; i < n; ++i) dot += g[i] * static_cast<double>(scores[i]);
  for (std::size_t i = 0; i < n; ++i) {
    const auto x = static_cast<double>(scores[i]);
    dlogits[i] = static_cast<float>(s.sigmoid ? g[i] * x * (1 - x) : x * (g[i] - dot));
  }
}

}  // namespace

void choose_experts(Matrix<const float> logits, const GateShape& s, const float* bias, const Routing& r) {
  for (std::int64_t t = 0; t < logits.rows; ++t) {
    float *scores = r.scores + t * s.experts, *weights = r.weights + t * s.top_k;
    std::int32_t* chosen = r.experts + t * s.top_k;
    score(logits.row(t), s, scores);
    choose(scores, s, bias, chosen);
    const double sum = s.top_k == 1 ? 1 : chosen_sum(scores, chosen, s.top_k);
    for (std::int64_t j = 0; j < s.top_k; ++j) weights[j] = static_cast<float>(scores[chosen[j]] / sum);
  }
  place(logits.rows, s, r);
}

void count_choices(const std::int32_t* chosen, std::int64_t choices, std::int64_t experts, float* counts) {
  std::fill_n(counts, experts, 0.0F);
  for (std::int64_t c = 0; c < choices; ++c) ++counts[chosen[c]];
}

void choose_experts_gradient(const Routing& r, const float* dweights, const GateShape& s, float loss_scale,
                             Matrix<float> dlogits, const float* counts, std::int64_t sharers) {
  std::vector<float> own(static_cast<std::size_t>(s.experts));
  if (counts == nullptr) count_choices(r.experts, dlogits.rows * s.top_k, s.experts, own.data());
  const std::vector<double> load = load_gradient(counts == nullptr ? own.data() : counts, s, dlogits.rows * sharers,
                                                 static_cast<double>(loss_scale));
  for (std::int64_t t = 0; t < dlogits.rows; ++t) {
    const float* scores = r.scores + t * s.experts;
    const std::int32_t* chosen = r.experts + t * s.top_k;
    const double sum = s.top_k == 1 ? 1 : chosen_sum(scores, chosen, s.top_k);
    std::vector<double> g(static_cast<std::size_t>(s.experts));
    double dot = 0;
    for (std::int64_t j = 0; j < s.top_k; ++j) {
      const std::int64_t c = t * s.top_k + j;
      const double d = r.places[c] < 0 ? 0 : static_cast<double>(dweights[c]);
      g[static_cast<std::size_t>(chosen[j])] = d / sum;
      dot += d * static_cast<double>(scores[chosen[j]]) / (sum * sum);
    }
    if (s.top_k > 1) {
      for (std::int64_t j = 0; j < s.top_k; ++j) g[static_cast<std::size_t>(chosen[j])] -= dot;
    }
    score_gradient(scores, s, g, load, dlogits.row(t));
  }
}

void expand_rows(Matrix<const float> x, const std::int32_t* places, std::int64_t copies, Matrix<float> out) {
  for (std::int64_t r = 0; r < out.rows; ++r) std::fill_n(out.row(r), out.columns, 0.0F);
  for (std::int64_t c = 0; c < x.rows * copies; ++c) {
    if (places[c] >= 0) std::copy_n(x.row(c / copies), x.columns, out.row(places[c]));
  }
}

void sum_rows(Matrix<const float> x, const std::int32_t* places, std::int64_t copies, Matrix<float> y) {
  for (std::int64_t t = 0; t < y.rows; ++t) {
    std::fill_n(y.row(t), y.columns, 0.0F);
    for (std::int64_t j = 0; j < copies; ++j) {
      const std::int32_t at = places[t * copies + j];
      if (at < 0) continue;
      for (std::int64_t i = 0; i < y.columns; ++i) y.row(t)[i] += x.row(at)[i];
    }
  }
}

void sum_weighted_rows(Matrix<const float> x, const std::int32_t* places, const float* weights, std::int64_t copies,
                       Matrix<float> y) {
  for (std::int64_t t = 0; t < y.rows; ++t) {
    std::fill_n(y.row(t), y.columns, 0.0F);
    for (std::int64_t j = t * copies; j < (t + 1) * copies; ++j) {
      for (std::int64_t i = 0; places[j] >= 0 && i < y.columns; ++i) y.row(t)[i] += weights[j] * x.row(places[j])[i];
    }
  }
}

void sort_chunks(Matrix<const float> x, const std::int32_t* counts, std::int64_t sources, std::int64_t experts,
                 bool back, Matrix<float> y) {
  // for each source and expert, the index of their first row in the order (source, expert)
  std::vector<std::int64_t> first(static_cast<std::size_t>(sources * experts));
  std::int64_t next = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    first[i] = next;
    next += counts[i];
  }
  std::int64_t sorted = 0;
  for (std::int64_t e = 0; e < experts; ++e) {
    for (std::int64_t s = 0; s < sources; ++s) {
      const std::int64_t i = s * experts + e, at = first[static_cast<std::size_t>(i)];
      for (std::int64_t r = 0; r < counts[i]; ++r)
        std::copy_n(x.row(back ? sorted + r : at + r), x.columns, y.row(back ? at + r : sorted + r));
      sorted += counts[i];
    }
  }
}

void scale_rows(const float* factors, Matrix<float> x) {
  for (std::int64_t r = 0; r < x.rows; ++r) {
    for (std::int64_t i = 0; i < x.columns; ++i) x.row(r)[i] *= factors[r];
  }
}

void row_products(Matrix<const float> a, Matrix<const float> b, float* y) {
  for (std::int64_t r = 0; r < a.rows; ++r) {
    double sum = 0;
    for (std::int64_t i = 0; i < a.columns; ++i)
      sum += static_cast<double>(a.row(r)[i]) * static_cast<double>(b.row(r)[i]);
    y[r] = static_cast<float>(sum);
  }
}

}  // namespace orrery::kernels
