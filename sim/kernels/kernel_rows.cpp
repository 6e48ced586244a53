#include "sim/kernels/kernel_rows.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/input_file.h"
#include "models/base/names.h"
#include "models/base/sensible.h"

namespace orrery {
namespace {

using Cells = std::vector<std::string_view>;

constexpr double kMostSize = 2147483648.0;      // 2^31: no kernel library takes a longer side of a matrix
constexpr double kMostElements = 1e15;          // in one tensor: 2 PB in 16 bits, more than any memory
constexpr std::int64_t kMostRanksOfANode = 72;  // of one NVLink domain (NVL72)
constexpr double kLeastMicroseconds = 1e-3;     // two clocks of a GPU, less than any kernel takes

Cells cells_of_line(std::string_view line) {
  Cells cells;
  while (true) {
    const std::size_t end = std::min(line.find(','), line.size());
    cells.push_back(line.substr(0, end));
    if (end == line.size()) return cells;
    line.remove_prefix(end + 1);
  }
}

// The hash of a text by FNV-1a with 64 bits (Fowler, Noll, Vo).
std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

// One line of a CSV table, whose values are found by the names of the columns in the header.
class NamedCells {
 public:
  NamedCells(const Cells& header, const Cells& cells) : header_(header), cells_(cells) {
    if (cells.size() != header.size())
      throw Error(fmt::format("has {} cells under {} columns", cells.size(), header.size()));
  }
  bool has(std::string_view name) const { return std::find(header_.begin(), header_.end(), name) != header_.end(); }
  std::string_view text(std::string_view name) const {
    const auto at = std::find(header_.begin(), header_.end(), name);
    if (at == header_.end()) throw Error(fmt::format("has no column {}", name));
    return cells_[static_cast<std::size_t>(at - header_.begin())];
  }
  double number(std::string_view name) const {
    const std::string_view cell = text(name);
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc{} || end != cell.data() + cell.size() ||
        !(value >= 0 && value <= sensible::kMostMicroseconds))
      fail(name, "is no size or time");
    return value;
  }
  // An integer from `least` to 2^31.
  std::int64_t whole(std::string_view name, std::int64_t least = 1) const {
    const double value = number(name);
    if (value != std::floor(value) || value < static_cast<double>(least) || value > kMostSize)
      fail(name, fmt::format("is no integer from {} to 2^31", least));
    return static_cast<std::int64_t>(value);
  }

 private:
  [[noreturn]] void fail(std::string_view name, std::string_view what) const {
    const std::string_view cell = text(name);
    const std::string quoted = cell.size() > sensible::kLongestWord ? "the cell" : fmt::format("'{}'", cell);
    throw Error(fmt::format("{}: {} {}", name, quoted, what));
  }
  const Cells& header_;
  const Cells& cells_;
};

// The precision of matrix products that a word in the tables of measured kernels means; nullopt if plans do not have
// it.
std::optional<Precision> precision_of_word(std::string_view word) {
  if (word == "bfloat16" || word == "half" || word == "float16") return Precision::bf16;
  if (word == "fp8" || word == "fp8_block") return Precision::fp8;
  if (word == "nvfp4") return Precision::nvfp4;
  return std::nullopt;
}

Op op_of(Work work, Precision precision) {
  Op op;
  op.work = std::move(work);
  op.precision = precision;
  return op;
}

// Adds the cast before a product in 8 bits or fewer: in the tables of measured kernels, the time of such a product
// includes the conversion of its input from 16 bits.
void add_quantisation(KernelRow& row, Precision precision, std::int64_t elements) {
  if (is_eight_bit(precision)) row.ops.push_back(op_of(Cast{elements, 2, 1}, Precision::bf16));
}

// Throws Error if a tensor with these sides has too many elements for whole numbers.
void check_elements(std::initializer_list<std::int64_t> sides) {
  double elements = 1;
  for (const std::int64_t side : sides) elements *= static_cast<double>(side);
  if (elements > kMostElements) throw Error("has a tensor of more than 1e15 elements; check the sizes");
}

// Whether a word in the tables means 16 bits.
bool is_sixteen_bits(std::string_view word) { return precision_of_word(word) == Precision::bf16; }

bool read_gemm(const NamedCells& c, Precision precision, KernelRow& row) {
  const std::int64_t m = c.whole("m"), n = c.whole("n"), k = c.whole("k");
  for (const auto& [a, b] : {std::pair(m, n), std::pair(m, k), std::pair(n, k)}) check_elements({a, b});
  row.kind = c.has("power_w") ? "gemm, sustained" : m < 64 ? "gemm, few rows" : "gemm";
  add_quantisation(row, precision, m * k);
  row.ops.push_back(op_of(Gemm{.m = m, .n = n, .k = k, .result_bytes = 2}, precision));
  row.shapes = fnv1a(fmt::format("{} {}", n, k));
  return true;
}

bool read_attention(const NamedCells& c, Precision precision, KernelRow& row) {
  const bool causal = c.has("kv_heads");
  const std::int64_t s = c.whole("seq");
  FlashAttention a{.batch = c.whole("batch"), .heads = c.whole("heads"), .query = s, .key = s};
  a.kv_heads = causal ? c.whole("kv_heads") : a.heads;
  a.head_dim = a.value_dim = c.whole("head_dim");
  check_elements({a.batch, s, a.heads, a.head_dim});
  check_elements({a.batch, s, a.kv_heads, a.head_dim});
  const std::int64_t window = causal ? c.whole("window", 0) : 0;
  if (c.has("kv_prec") && !is_sixteen_bits(c.text("kv_prec"))) {
    row.precision += fmt::format(" with a cache in {}", c.text("kv_prec"));
    return false;
  }
  if (window > 0 && window < s) return false;
  if (!causal) a.pairs = static_cast<double>(s) * static_cast<double>(s);
  row.kind = causal ? "attention, causal" : "attention, all pairs";
  row.ops.push_back(op_of(a, precision));
  row.shapes = fnv1a(fmt::format("{} {} {}", a.heads, a.kv_heads, a.head_dim));
  return precision == Precision::bf16;
}

// The precision of experts' products and the format of their weights that a word in the tables means; nullopt if plans
// do not have it. In 4 bits alone, weights share a scale by 128 in whole numbers, and by 16 in floats.
struct ExpertWord {
  std::string_view word;
  Precision precision;
  WeightFormat weights;
};
constexpr ExpertWord kExpertWords[] = {
    {"bfloat16", Precision::bf16, {}},
    {"fp8", Precision::fp8, {.code = WeightCode::fp8}},
    {"fp8_block", Precision::fp8, {.code = WeightCode::fp8, .group = 128}},
    {"nvfp4", Precision::nvfp4, {.code = WeightCode::nvfp4, .group = 16}},
    {"int4_wo", Precision::bf16, {.code = WeightCode::int4, .group = 128}},
    {"w4a16_mxfp4", Precision::bf16, {.code = WeightCode::mxfp4, .group = 32}},
    {"w4a8_mxfp4_mxfp8", Precision::mxfp8, {.code = WeightCode::mxfp4, .group = 32}},
};

// Whether a kernel chooses the experts itself, from scores that its row does not state: these rows read their weights
// in less time than the memory's bandwidth allows if all experts got rows as the row says. Scores that are alike for
// all experts make TensorRT-LLM's low-latency kernel with several choices a token, and kernels that know DeepSeek-V3's
// groups of experts, choose the same ones again and again.
bool chooses_itself(const KernelRow& row, std::int64_t hidden, std::int64_t top_k, std::int64_t experts) {
  const bool low_latency = row.kernel.find("min_latency") != std::string::npos;
  const bool routes = low_latency || row.kernel.find("trtllm") != std::string::npos;
  return (low_latency && top_k > 1) || (routes && hidden == 7168 && top_k == 8 && experts == 256);
}

// Whether a rank's experts have a gate: those with 22 choices a token (Nemotron 3) do not, as TensorRT-LLM's names of
// their kernels say.
bool is_gated(const KernelRow& row, std::int64_t top_k) {
  return top_k != 22 && row.kernel.find("nongated") == std::string::npos;
}

// The rows of a rank's experts are gathered, multiplied, and summed back, as a plan has it (models/layers/generation).
void add_expert_ops(KernelRow& row, const ExpertWord& as, std::int64_t tokens, GroupedGemm product, std::int64_t width,
                    std::int64_t hidden, std::int64_t top_k) {
  const auto quantised = [&](std::int64_t columns) {
    if (is_eight_bit(as.precision)) row.ops.push_back(op_of(Cast{product.rows * columns, 2, 1}, Precision::bf16));
  };
  row.ops.push_back(op_of(Permute{tokens, top_k, hidden, product.rows, true, true}, Precision::bf16));
  quantised(hidden);
  const bool gated = is_gated(row, top_k);
  product.out = gated ? 2 * width : width;
  product.in = hidden;
  row.ops.push_back(op_of(product, as.precision));
  row.ops.push_back(op_of(Activation{.rows = product.rows, .columns = width, .gated = gated}, Precision::bf16));
  quantised(width);
  product.out = hidden;
  product.in = width;
  row.ops.push_back(op_of(product, as.precision));
  row.ops.push_back(op_of(Permute{tokens, top_k, hidden, product.rows, false, true}, Precision::bf16));
}

// Experts that no row is for are not read: with rows spread evenly, all are if there are as many rows.
bool read_experts(const NamedCells& c, KernelRow& row) {
  const auto* as = std::find_if(std::begin(kExpertWords), std::end(kExpertWords),
                                [&](const ExpertWord& w) { return w.word == row.precision; });
  if (as == std::end(kExpertWords)) return false;
  const std::int64_t ranks = c.whole("ep"), experts = c.whole("experts") / ranks;
  const std::int64_t rows = c.whole("tokens") * c.whole("topk") / ranks;  // at most 2^62
  const std::int64_t hidden = c.whole("hidden"), width = c.whole("inter") / c.whole("tp"), top_k = c.whole("topk");
  if (experts < 1 || rows < 1 || width < 1 || c.text("dist") != "balanced") return false;
  if (chooses_itself(row, hidden, top_k, c.whole("experts"))) return false;
  check_elements({rows, hidden});
  check_elements({rows, 2 * width});
  check_elements({experts, 2 * width, hidden});
  row.kind = c.whole("tokens") < 64 ? "experts, few tokens" : "experts";
  add_expert_ops(row, *as, c.whole("tokens"),
                 {.groups = std::min(experts, rows),
                  .rows = rows,
                  .even = true,
                  .weights = as->weights,
                  .passed = c.whole("tokens") * top_k - rows},
                 width, hidden, top_k);
  row.shapes = fnv1a(fmt::format("{} {} {} {}", hidden, width, experts, top_k));
  return true;
}

bool read_quantize(const NamedCells& c, KernelRow& row) {
  if (c.text("op") != "scale_matrix" || row.precision != "fp8") return false;
  const std::int64_t m = c.whole("m"), k = c.whole("k");
  check_elements({m, k});
  row.kind = "quantize";
  row.ops.push_back(op_of(Cast{m * k, 2, 1}, Precision::bf16));
  row.shapes = fnv1a(fmt::format("{}", k));
  return true;
}

// The minor version in "2.29.2"; 0 if it is no version of NCCL 2.
std::int64_t minor_of(std::string_view version) {
  std::int64_t minor = 0;
  if (version.starts_with("2.")) std::from_chars(version.data() + 2, version.data() + version.size(), minor);
  return minor;
}

// Reads a collective that NCCL ran on one node. Those of other libraries choose kernels of their own, and of several
// nodes a table does not say how they are joined.
bool read_collective(const NamedCells& c, KernelRow& row) {
  constexpr std::pair<std::string_view, CollectiveKind> kKinds[] = {{"all_reduce", CollectiveKind::all_reduce},
                                                                    {"all_gather", CollectiveKind::all_gather},
                                                                    {"reduce_scatter", CollectiveKind::reduce_scatter},
                                                                    {"alltoall", CollectiveKind::all_to_all}};
  const auto* kind =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& k) { return k.first == c.text("op"); });
  row.framework = c.text("lib");
  row.precision = c.text("dtype");
  row.nccl_minor = minor_of(c.text("ver"));
  const std::int64_t ranks = c.whole("ranks"), nodes = c.whole("nodes"), bytes = c.whole("bytes");
  const bool sums = kind != std::end(kKinds) &&
                    (kind->second == CollectiveKind::all_reduce || kind->second == CollectiveKind::reduce_scatter);
  if (kind == std::end(kKinds) || row.framework != "nccl" || row.nccl_minor == 0 || nodes != 1 || ranks < 2 ||
      ranks > kMostRanksOfANode || (sums && row.precision == "int8"))
    return false;
  row.kind = kind->first;
  row.ranks = static_cast<int>(ranks);
  row.ops.push_back(op_of(Collective{.kind = kind->second, .bytes = bytes}, Precision::bf16));
  row.shapes = fnv1a(fmt::format("{} {}", ranks, bytes));
  return true;
}

// Fills in the ops of a measured kernel; returns false for a kernel that no op of a plan describes.
bool read_ops(const NamedCells& c, KernelRow& row) {
  if (c.has("lib") && c.has("ranks") && c.has("bytes")) return read_collective(c, row);
  if (!c.has("prec") || !c.has("fw")) return false;
  row.framework = c.text("fw");
  row.precision = c.text("prec");
  if (c.has("src")) row.kernel = c.text("src");
  const auto precision = precision_of_word(row.precision);
  if (c.has("op")) return c.has("m") && c.has("k") && !c.has("n") && read_quantize(c, row);
  if (c.has("tokens") && c.has("inter") && c.has("ep")) return read_experts(c, row);
  if (!precision) return false;
  if (c.has("m") && c.has("n") && c.has("k")) return read_gemm(c, *precision, row);
  if (c.has("seq") && c.has("heads") && c.has("head_dim") && c.has("batch")) return read_attention(c, *precision, row);
  return false;
}

}  // namespace

std::vector<std::string> kernel_tables(const std::string& path) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(path)) return {path};
  std::vector<std::string> tables;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().string();
    if (name.ends_with(".csv") || name.ends_with(".csv.gz")) tables.push_back(name);
  }
  if (tables.empty()) throw Error(path + ": has no table, .csv or .csv.gz; give a folder of measured kernels");
  std::sort(tables.begin(), tables.end());
  return tables;
}

namespace {

// Splits the text of a table into lines and calls `take` with each that is not empty. Errors name path and line.
template <class Take>
void each_line(const std::string& path, std::string_view rest, const Take& take) {
  for (std::int64_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    try {
      if (!is_printable(line)) throw Error("holds control characters or is no UTF-8; write the table again");
      take(line);
    } catch (const Error& error) {
      throw Error(fmt::format("{}:{}: {}", path, number, error.what()));
    }
  }
}

}  // namespace

void read_kernel_rows(const std::string& path, KernelRows& rows) {
  const std::string text = read_input(path, kMostMeasurements);
  const std::string file = std::filesystem::path(path).filename().string();
  if (!is_printable(file)) throw Error("a table of kernels has a name that is not printable; give it another");
  const std::string gpu = file.substr(0, file.find('_'));
  rows.tables.push_back(file);
  Cells header;
  each_line(path, text, [&](std::string_view line) {
    if (header.empty()) {
      header = cells_of_line(line);
      if (std::find(header.begin(), header.end(), "us") == header.end())
        throw Error("has no column us; give a table of measured kernels with a header");
      return;
    }
    const Cells cells = cells_of_line(line);
    const NamedCells named(header, cells);
    KernelRow row{.gpu = gpu, .table = rows.tables.size() - 1};
    const double us = named.number("us");
    row.measured = us * 1e-6;
    if (read_ops(named, row) && us >= kLeastMicroseconds) {
      rows.rows.push_back(std::move(row));
    } else {
      const std::string_view what = named.has("op") ? named.text("op") : row.precision;
      ++rows.not_covered[fmt::format("{}: {}", file, what)];
    }
  });
}

}  // namespace orrery
