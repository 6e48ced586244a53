#include "sim/kernels/kernel_rows.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/input_file.h"
#include "models/base/names.h"
#include "models/base/sensible.h"

namespace orrery {
namespace {

using Cells = std::vector<std::string_view>;

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
    if (error != std::errc{} || end != cell.data() + cell.size() || !(value >= 0 && value <= 1e15))
      throw Error(fmt::format("{}: '{}' is no size or time", name,
                              printable(std::string(cell.substr(0, sensible::kLongestWord)))));
    return value;
  }
  std::int64_t whole(std::string_view name) const { return static_cast<std::int64_t>(number(name)); }

 private:
  const Cells& header_;
  const Cells& cells_;
};

// The precision of matrix products that a word in the tables of measured kernels means; nullopt if plans do not have
// it.
std::optional<Precision> precision_of_word(std::string_view word) {
  if (word == "bfloat16" || word == "half" || word == "float16") return Precision::bf16;
  if (word == "fp8" || word == "fp8_block") return Precision::fp8;
  return std::nullopt;
}

Op op_of(Work work, Precision precision) {
  Op op;
  op.work = std::move(work);
  op.precision = precision;
  return op;
}

// Adds the cast before an 8-bit product: in the tables of measured kernels, the time of such a product includes the
// conversion of its input from 16 to 8 bits.
void add_quantisation(KernelRow& row, Precision precision, std::int64_t elements) {
  if (precision == Precision::fp8) row.ops.push_back(op_of(Cast{elements, 2, 1}, Precision::bf16));
}

bool read_gemm(const NamedCells& c, Precision precision, KernelRow& row) {
  const std::int64_t m = c.whole("m"), n = c.whole("n"), k = c.whole("k");
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
  const std::int64_t window = causal ? c.whole("window") : 0;
  if (window > 0 && window < s) return false;
  if (!causal) a.pairs = static_cast<double>(s) * static_cast<double>(s);
  row.kind = causal ? "attention, causal" : "attention, all pairs";
  row.ops.push_back(op_of(a, precision));
  row.shapes = fnv1a(fmt::format("{} {} {}", a.heads, a.kv_heads, a.head_dim));
  return precision == Precision::bf16;
}

bool read_experts(const NamedCells& c, Precision precision, KernelRow& row) {
  const std::int64_t ranks = c.whole("ep"), experts = c.whole("experts") / std::max<std::int64_t>(1, ranks);
  const std::int64_t rows = c.whole("tokens") * c.whole("topk") / std::max<std::int64_t>(1, ranks);
  const std::int64_t hidden = c.whole("hidden"), width = c.whole("inter") / std::max<std::int64_t>(1, c.whole("tp"));
  if (experts < 1 || rows < 1 || width < 1 || c.text("dist") != "balanced") return false;
  row.kind = c.whole("tokens") < 64 ? "experts, few tokens" : "experts";
  add_quantisation(row, precision, rows * hidden);
  GroupedGemm up{.groups = experts, .rows = rows, .out = 2 * width, .in = hidden, .even = true};
  GroupedGemm down{.groups = experts, .rows = rows, .out = hidden, .in = width, .even = true};
  row.ops.push_back(op_of(up, precision));
  row.ops.push_back(op_of(Activation{.rows = rows, .columns = width}, Precision::bf16));
  add_quantisation(row, precision, rows * width);
  row.ops.push_back(op_of(down, precision));
  row.shapes = fnv1a(fmt::format("{} {} {} {}", hidden, width, experts, c.whole("topk")));
  return true;
}

bool read_quantize(const NamedCells& c, KernelRow& row) {
  if (c.text("op") != "scale_matrix") return false;
  row.kind = "quantize";
  row.ops.push_back(op_of(Cast{c.whole("m") * c.whole("k"), 2, 1}, Precision::bf16));
  row.shapes = fnv1a(fmt::format("{}", c.whole("k")));
  return true;
}

// Fills in the ops of a measured kernel; returns false for a kernel that no op of a plan describes.
bool read_ops(const NamedCells& c, KernelRow& row) {
  if (!c.has("prec") || !c.has("fw")) return false;
  row.framework = c.text("fw");
  row.precision = c.text("prec");
  if (c.has("src")) row.kernel = c.text("src");
  const auto precision = precision_of_word(row.precision);
  if (c.has("op")) return c.has("m") && c.has("k") && !c.has("n") && read_quantize(c, row);
  if (!precision) return false;
  if (c.has("m") && c.has("n") && c.has("k")) return read_gemm(c, *precision, row);
  if (c.has("seq") && c.has("heads") && c.has("head_dim") && c.has("batch")) return read_attention(c, *precision, row);
  if (c.has("tokens") && c.has("inter") && c.has("ep")) return read_experts(c, *precision, row);
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

void read_kernel_rows(const std::string& path, KernelRows& rows) {
  const std::string text = read_input(path, kMostMeasurements);
  const std::string file = std::filesystem::path(path).filename().string();
  const std::string gpu = file.substr(0, file.find('_'));
  std::string_view rest = text;
  Cells header;
  for (std::int64_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    try {
      if (header.empty()) {
        header = cells_of_line(line);
        if (std::find(header.begin(), header.end(), "us") == header.end())
          throw Error("has no column us; give a table of measured kernels with a header");
        continue;
      }
      const Cells cells = cells_of_line(line);
      const NamedCells named(header, cells);
      KernelRow row{.gpu = gpu};
      row.measured = named.number("us") * 1e-6;
      if (!read_ops(named, row) || row.measured <= 0) {
        ++rows.not_covered[named.has("op") ? fmt::format("{}: {}", file, printable(std::string(named.text("op"))))
                                           : fmt::format("{}: {}", file, row.precision)];
        continue;
      }
      rows.rows.push_back(std::move(row));
    } catch (const Error& error) {
      throw Error(fmt::format("{}:{}: {}", path, number, error.what()));
    }
  }
}

}  // namespace orrery
