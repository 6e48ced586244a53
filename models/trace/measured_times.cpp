#include "models/trace/measured_times.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace orrery {
namespace {

double as_real(std::int64_t x) { return static_cast<double>(x); }

std::string_view name_of(Gemm::Role role) {
  static constexpr std::string_view names[] = {"output",         "input_gradient", "weight_gradient",
                                               "scores",         "values",         "probability_gradient",
                                               "value_gradient", "query_gradient", "key_gradient"};
  return names[static_cast<std::size_t>(role)];
}

std::string_view name_of(Direction x) { return x == Direction::forward ? "forward" : "backward"; }

std::string_view name_of(CrossEntropy::Part part) {
  static constexpr std::string_view names[] = {"maximum", "exponent", "loss", "gradient", "rescale", "combine"};
  return names[static_cast<std::size_t>(part)];
}

std::string_view name_of(Distillation::Part part) {
  static constexpr std::string_view names[] = {"maximum", "exponent", "loss", "gradient"};
  return names[static_cast<std::size_t>(part)];
}

// Shapes returns, for an op whose elements have `width` bytes, the kind of the op and the sizes by which its measured
// times are looked up. Shape::flops says whether its amount of work is counted in FLOPs or in bytes.
struct Shapes {
  Bytes width;

  struct Shape {
    std::string kind;
    std::vector<double> sizes;
    bool flops = false;
  };

  // Returns a suffix for the name of a kernel's kind if the data type of the result differs from that of the operands,
  // as for fp32 gradients of bf16 layers: "/" and the bytes per element of the result; else "".
  std::string unlike(Bytes result) const { return result == width ? "" : fmt::format("/{}", result); }

  Shape operator()(const Gemm& g) const {
    const std::string kind =
        fmt::format("gemm/{}{}{}", name_of(g.role), g.accumulate ? "/add" : "", unlike(g.result_bytes));
    if (g.heads == 0) return {kind, {as_real(g.m), as_real(g.n), as_real(g.k)}, true};
    return {kind, {as_real(g.m), as_real(g.n), as_real(g.k), as_real(g.batch)}, true};
  }
  Shape operator()(const GroupedGemm& g) const {
    return {fmt::format("grouped gemm/{}{}{}", name_of(g.role), g.accumulate ? "/add" : "", unlike(g.result_bytes)),
            {as_real(g.rows), as_real(g.out), as_real(g.in), as_real(g.groups)},
            true};
  }
  Shape operator()(const GroupedBias& b) const {
    return {fmt::format("grouped bias{}/{}", b.weighted ? "/weighted" : "", name_of(b.direction)),
            {as_real(b.rows), as_real(b.columns), as_real(b.groups)}};
  }
  Shape operator()(const Gate& g) const {
    return {fmt::format("gate/{}", name_of(g.direction)), {as_real(g.rows), as_real(g.experts), as_real(g.top_k)}};
  }
  Shape operator()(const Permute& p) const {
    return {fmt::format("permute/{}", p.expand ? "expand" : "sum"), {as_real(p.moved), as_real(p.columns)}};
  }
  Shape operator()(const SigmoidGate& g) const {
    return {fmt::format("sigmoid gate/{}", name_of(g.direction)), {as_real(g.rows), as_real(g.columns)}};
  }
  Shape operator()(const SortChunks& s) const { return {"sort chunks", {as_real(s.rows), as_real(s.columns)}}; }
  Shape operator()(const CountTokens& c) const { return {"count tokens", {as_real(c.counts)}}; }
  Shape operator()(const FlashAttention& a) const {
    return {fmt::format("attention/{}", name_of(a.direction)),
            {as_real(a.batch) * as_real(a.heads), as_real(a.query), 2 * keys_per_query(a), as_real(a.head_dim)},
            true};
  }
  Shape operator()(const MoveHeads& m) const {
    return {fmt::format("move heads/{}", name_of(m.direction)), {as_real(m.rows), as_real(m.members * m.columns())}};
  }
  Shape operator()(const Softmax& s) const {
    return {fmt::format("softmax/{}", name_of(s.direction)), {as_real(s.rows), as_real(s.columns)}};
  }
  Shape operator()(const Normalize& n) const {
    static constexpr std::string_view parts[] = {"", "/sums", "/finish"};
    return {fmt::format("norm/{}/{}{}", n.layernorm ? "layer" : "rms", name_of(n.direction),
                        parts[static_cast<std::size_t>(n.part)]),
            {as_real(n.rows), as_real(n.columns)}};
  }
  Shape operator()(const Rotary& r) const {
    return {fmt::format("rotary/{}", name_of(r.direction)), {as_real(r.rows), as_real(r.columns)}};
  }
  Shape operator()(const Convolution& c) const {
    return {fmt::format("convolution/{}", name_of(c.direction)),
            {as_real(c.batch) * as_real(c.sequence), as_real(c.columns)}};
  }
  Shape operator()(const Scan& s) const {
    return {fmt::format("scan/{}/{}", row_of(s.rule).word, name_of(s.direction)),
            {as_real(s.rows()), as_real(s.heads), as_real(s.key_dim), as_real(s.value_dim)},
            true};
  }
  Shape operator()(const GatedNorm& n) const {
    return {fmt::format("gated norm/{}", name_of(n.direction)), {as_real(n.rows), as_real(n.columns)}};
  }
  Shape operator()(const IndexScores& i) const {
    return {fmt::format("index scores/{}", name_of(i.direction)),
            {as_real(i.batch), as_real(i.query), as_real(i.key), as_real(i.heads)},
            true};
  }
  Shape operator()(const Pool& p) const {
    return {fmt::format("pool/{}", name_of(p.direction)),
            {as_real(p.batch) * as_real(p.sequence), as_real(p.columns), as_real(p.rate)}};
  }
  Shape operator()(const MixStreams& m) const {
    static constexpr std::string_view parts[] = {"repeat", "add", "collapse", "mix"};
    return {fmt::format("streams/{}/{}", parts[static_cast<std::size_t>(m.part)], name_of(m.direction)),
            {as_real(m.rows), as_real(m.columns), as_real(m.streams)}};
  }
  Shape operator()(const LatentHeads& l) const {
    return {fmt::format("latent heads/{}", name_of(l.direction)),
            {as_real(l.rows), as_real(l.heads), as_real(l.nope + l.rope + l.value)}};
  }
  Shape operator()(const Split& s) const {
    return {fmt::format("split/{}", name_of(s.direction)), {as_real(s.rows), as_real(s.first + s.second)}};
  }
  Shape operator()(const Activation& a) const {
    // The kind's name tells weighted activations (whose rows are multiplied by the router's weights) apart, because
    // their backward also computes the activation's output again.
    return {fmt::format("activation/{}{}/{}", a.gated ? "swiglu" : "gelu", a.weighted ? "/weighted" : "",
                        name_of(a.direction)),
            {as_real(a.rows), as_real(a.columns)}};
  }
  Shape operator()(const Clamp& c) const {
    return {fmt::format("clamp/{}", name_of(c.direction)), {as_real(c.rows), as_real(c.columns)}};
  }
  Shape operator()(const Residual& r) const {
    return {fmt::format("residual{}{}{}/{}", r.residual ? "" : "/none", r.bias ? "/bias" : "",
                        r.dropout ? "/dropout" : "", name_of(r.direction)),
            {as_real(r.rows), as_real(r.columns)}};
  }
  Shape operator()(const Add& a) const { return {"add", {as_real(a.elements)}}; }
  Shape operator()(const BiasGradient& b) const { return {"bias gradient", {as_real(b.rows), as_real(b.columns)}}; }
  Shape operator()(const Embedding& e) const {
    const bool forward = e.direction == Direction::forward;
    return {fmt::format("{}/{}{}", e.positions ? "positions" : "embedding", name_of(e.direction),
                        forward ? "" : unlike(e.gradient_bytes)),
            {as_real(e.rows), as_real(e.columns)}};
  }
  Shape operator()(const CrossEntropy& c) const {
    return {fmt::format("cross-entropy/{}{}", name_of(c.part), c.narrow ? "/narrow" : ""),
            {as_real(c.rows), as_real(c.columns)}};
  }
  Shape operator()(const Distillation& d) const {
    return {fmt::format("distillation/{}", name_of(d.part)), {as_real(d.rows), as_real(d.columns)}};
  }
  Shape operator()(const FeatureLoss& f) const {
    return {f.part == FeatureLoss::Part::loss ? "feature loss" : "feature loss/gradient",
            {as_real(f.rows), as_real(f.columns)}};
  }
  Shape operator()(const Preference& p) const { return {"preference", {as_real(p.rows)}}; }
  Shape operator()(const Cast& c) const { return {fmt::format("cast/{}-{}", c.from, c.to), {as_real(c.elements)}}; }
  Shape operator()(const Quantize& q) const {
    return {fmt::format("quantize/{}-{}{}", q.wide, name_of(q.format.kind), q.summands > 0 ? "/sum" : ""),
            {as_real(q.elements)}};
  }
  Shape operator()(const Dequantize& q) const {
    return {fmt::format("dequantize/{}-{}{}", name_of(q.format.kind), q.wide, q.adds ? "/sum" : ""),
            {as_real(q.elements)}};
  }
  Shape operator()(const FakeQuantize& f) const {
    return {fmt::format("fake quantise/{}", name_of(f.format.code)), {as_real(f.rows), as_real(f.columns)}};
  }
  Shape operator()(const SoftCap& s) const {
    return {fmt::format("soft cap/{}", name_of(s.direction)), {as_real(s.elements)}};
  }
  Shape operator()(const Accumulate& a) const {
    return {fmt::format("accumulate/{}-{}", a.from, a.to), {as_real(a.elements)}};
  }
  Shape operator()(const Load& l) const { return {"load", {as_real(l.rows)}}; }
  Shape operator()(const Fill& f) const { return {"fill", {as_real(f.bytes)}}; }
  Shape operator()(const Multiply& m) const { return {fmt::format("multiply/{}", m.width), {as_real(m.elements)}}; }
  Shape operator()(const PlaceCopy& c) const {
    return {fmt::format("copy/{}-{}", static_cast<int>(c.from), static_cast<int>(c.to)), {as_real(c.bytes)}};
  }
  Shape operator()(const Wait&) const { return {"wait", {1}}; }
  Shape operator()(const Exchange&) const { return {"exchange", {1}}; }
  Shape operator()(const SquaredNorm& n) const {
    return {fmt::format("squared norm/{}", n.width), {as_real(n.elements)}};
  }
  Shape operator()(const Update& u) const {
    // The name of an update's kind states the bytes of a gradient only if they are not the usual 4 (fp32).
    const std::string gradient = u.gradient == 4 ? "" : fmt::format("/{}", u.gradient);
    // part of the kind's name for updates that write no 16-bit copy of the weights, because forward reads the master
    // weights
    const std::string copy = u.master > 0 && u.forward == 0 ? "/no copy" : "";
    return {fmt::format("update/{}{}{}{}", u.moments, u.master > 0 ? "/master" : "", copy, gradient),
            {as_real(u.elements)}};
  }
  Shape operator()(const Orthogonalize& o) const {
    return {"orthogonalize", {as_real(o.rows), as_real(o.columns), as_real(o.matrices)}};
  }
  Shape operator()(const MoveDirections& m) const {
    return {fmt::format("cast/{}-{}", m.back ? m.to : m.from, m.back ? m.from : m.to), {as_real(m.elements)}};
  }
  Shape operator()(const Collective& c) const { return {"collective", {as_real(c.bytes)}}; }
  Shape operator()(const Transfer& t) const { return {"message", {as_real(t.bytes)}}; }
};

constexpr std::size_t kMostSizes = 4;
// A small number that is added, for each slope, to the diagonal of the fit's normal equations (ridge regression; the
// samples' weights sum to 1), so that a slope that the samples do not determine, because all lie on one line, becomes
// 0.
constexpr double kRidge = 1e-6;
constexpr double kSame = 1e-12;  // square of the distance, in log2 of sizes, below which two samples count as one

using Point = std::array<double, kMostSizes>;

// Returns the logs to base 2 of the sizes; a size of zero (an empty shard) counts as one.
Point point_of(const std::vector<double>& sizes) {
  Point p{};
  for (std::size_t i = 0; i < sizes.size() && i < kMostSizes; ++i) p[i] = std::log2(std::max(sizes[i], 1.0));
  return p;
}

double squared_distance(const Point& a, const Point& b) {
  double sum = 0;
  for (std::size_t i = 0; i < kMostSizes; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

constexpr std::size_t kUnknowns = kMostSizes + 1;
using Row = std::array<double, kUnknowns + 1>;
// A system of linear equations; the matrix is symmetric and positive definite, the last column is the right-hand side.
using System = std::array<Row, kUnknowns>;

// Returns the first unknown of the system, which is the height of the fitted plane at the queried point. The
// elimination comes to this unknown last, so no back-substitution is needed.
double solve_first(System& a) {
  for (std::size_t k = kUnknowns; k-- > 1;) {
    for (std::size_t i = 0; i < k; ++i) {
      const double f = a[i][k] / a[k][k];
      for (std::size_t j = 0; j < k; ++j) a[i][j] -= f * a[k][j];
      a[i][kUnknowns] -= f * a[k][kUnknowns];
    }
  }
  return a[0][kUnknowns] / a[0][0];
}

struct Known {
  Point at;
  double value;
};

// Returns the height at a point of the plane that is fitted to the known values by moving least squares.
double plane_at(const std::vector<Known>& known, const Point& query) {
  std::vector<double> weights;
  double total = 0;
  for (const Known& k : known) {
    const double distance = squared_distance(k.at, query);
    if (distance < kSame) return k.value;
    weights.push_back(1 / (distance * distance));
    total += weights.back();
  }
  System a{};
  for (std::size_t s = 0; s < known.size(); ++s) {
    std::array<double, kUnknowns> x{1};
    for (std::size_t i = 0; i < kMostSizes; ++i) x[i + 1] = known[s].at[i] - query[i];
    const double w = weights[s] / total;
    for (std::size_t i = 0; i < kUnknowns; ++i) {
      for (std::size_t j = 0; j < kUnknowns; ++j) a[i][j] += w * x[i] * x[j];
      a[i][kUnknowns] += w * x[i] * known[s].value;
    }
  }
  for (std::size_t i = 1; i < kUnknowns; ++i) a[i][i] += kRidge;
  return solve_first(a);
}

}  // namespace

WorkShape shape_of(const Work& work, Bytes width) {
  Shapes::Shape s = std::visit(Shapes{width}, work);
  const Cost cost = cost_of(work, width);
  return {fmt::format("{} {}", s.kind, width == 2 ? "bf16" : "fp32"), std::move(s.sizes),
          s.flops ? cost.flops : cost.bytes};
}

Seconds interpolate(const OpTable& table, const WorkShape& shape, const Law& law) {
  const auto expected = [&](const OpSample& s) { return law.of_sample ? law.of_sample(s.sizes, s.amount) : s.amount; };
  std::vector<Known> known;
  Point low, high;
  low.fill(std::numeric_limits<double>::max());
  high.fill(std::numeric_limits<double>::lowest());
  double best = std::numeric_limits<double>::max(), worst = std::numeric_limits<double>::lowest();
  for (const OpSample& s : table.samples) {
    known.push_back({point_of(s.sizes), std::log2(s.seconds / expected(s))});
    for (std::size_t i = 0; i < kMostSizes; ++i) {
      low[i] = std::min(low[i], known.back().at[i]);
      high[i] = std::max(high[i], known.back().at[i]);
    }
    best = std::min(best, known.back().value);
    worst = std::max(worst, known.back().value);
  }
  Point query = point_of(shape.sizes);
  for (std::size_t i = 0; i < kMostSizes; ++i) query[i] = std::clamp(query[i], low[i], high[i]);
  const Seconds task = law.of_sample ? law.of_task : shape.amount;
  return task * std::exp2(std::clamp(plane_at(known, query), best, worst));
}

namespace {

// Returns the samples of a shape's kind; nullptr if there are none, or if they were measured by a version with another
// number of sizes.
const OpTable* find_ops(const MeasuredTimes& times, const WorkShape& shape) {
  for (const OpTable& table : times.ops) {
    if (table.kind != shape.kind) continue;
    return table.samples.front().sizes.size() == shape.sizes.size() ? &table : nullptr;
  }
  return nullptr;
}

}  // namespace

std::optional<Seconds> measured_time(const MeasuredTimes& times, const Work& work, Bytes width, const Law& law) {
  const WorkShape shape = shape_of(work, width);
  const OpTable* table = find_ops(times, shape);
  return table == nullptr ? std::nullopt : std::optional(interpolate(*table, shape, law));
}

std::optional<Seconds> covered_time(const MeasuredTimes& times, const Work& work, Bytes width, const Law& law) {
  const WorkShape shape = shape_of(work, width);
  const OpTable* table = find_ops(times, shape);
  return table == nullptr || !covers(*table, shape) ? std::nullopt : std::optional(interpolate(*table, shape, law));
}

const TransferTable* find_transfers(const MeasuredTimes& times, std::string_view kind, std::int64_t ranks,
                                    std::int64_t nodes) {
  const TransferTable* found = nullptr;
  for (const TransferTable& table : times.transfers) {
    if (table.kind != kind || table.ranks != ranks) continue;
    if (table.nodes == nodes) return &table;
    if (table.nodes == 0) found = &table;
  }
  return found;
}

bool covers(const OpTable& table, const WorkShape& shape) {
  for (std::size_t i = 0; i < shape.sizes.size(); ++i) {
    double low = std::numeric_limits<double>::max(), high = 0;
    for (const OpSample& s : table.samples) {
      low = std::min(low, s.sizes[i]);
      high = std::max(high, s.sizes[i]);
    }
    if (2 * shape.sizes[i] < low || shape.sizes[i] > 2 * high) return false;
  }
  return true;
}

bool covers(const TransferTable& table, Bytes bytes) {
  return 2 * bytes >= table.samples.front().bytes && bytes <= 2 * table.samples.back().bytes;
}

Seconds interpolate(const TransferTable& table, Bytes bytes) {
  const auto& s = table.samples;
  if (bytes <= s.front().bytes || s.size() == 1)
    return s.front().seconds * std::max(1.0, as_real(bytes) / as_real(std::max<Bytes>(s.front().bytes, 1)));
  auto above = std::find_if(s.begin() + 1, s.end() - 1, [&](const TransferSample& x) { return x.bytes >= bytes; });
  const TransferSample &a = *std::prev(above), &b = *above;
  const double per_byte = std::max(0.0, (b.seconds - a.seconds) / as_real(b.bytes - a.bytes));
  return a.seconds + per_byte * as_real(bytes - a.bytes);
}

std::optional<Seconds> measured_transfer(const MeasuredTimes& times, std::string_view kind, std::int64_t ranks,
                                         Bytes bytes) {
  const TransferTable* table = find_transfers(times, kind, ranks);
  return table == nullptr ? std::nullopt : std::optional(interpolate(*table, bytes));
}

}  // namespace orrery
