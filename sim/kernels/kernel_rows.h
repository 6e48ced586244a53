#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// A measured kernel, or a few kernels that run one after another, as ops of a plan on one GPU, with the measured time
// when nothing else ran; or a collective of GPUs of one node.
struct KernelRow {
  std::string gpu, kind, framework, precision;  // "h100-sxm", "gemm", "trtllm", "bfloat16"
  std::string kernel;                           // name of the kernel in the table; "" without one
  std::vector<Op> ops;
  int ranks = 1;                // GPUs of a collective
  std::int64_t nccl_minor = 0;  // minor version of the NCCL 2.x that ran it; 0: no collective
  double measured = 0;          // measured time in seconds
  std::uint64_t shapes = 0;     // hash (FNV-1a) of all sizes except the number of tokens
  std::size_t table = 0;        // index of the file that holds it, in KernelRows::tables
};

// Groups of shapes are divided by their hash: every fifth is judged, and nothing is fitted to it.
inline constexpr std::uint64_t kShapeParts = 5;
inline bool is_judged(const KernelRow& row) { return row.shapes % kShapeParts == 0; }

struct KernelRows {
  std::vector<KernelRow> rows;
  std::vector<std::string> tables;                  // names of the files, without folders
  std::map<std::string, std::int64_t> not_covered;  // number of measured kernels that no op describes, by reason
};

// Reads a table of measured kernels (CSV with a header, gzipped or not) whose name begins with a GPU's:
// "h100-sxm_gemm.csv". The header tells the kind of kernel; times are in a column us, microseconds.
//   gemm       fw, prec, m, n, k            y (m, n) = x (m, k) times a weight; with power_w: repeated for a second; in
//     8 and 4 bits with the cast of x
//   attention  fw, prec, batch, seq, heads, kv_heads, head_dim, window    causal, no tokens before; with
//     kv_prec: that of keys and values, which is 16 bits
//   attention  fw, prec, batch, seq, heads, head_dim                      all pairs of tokens
//   experts    fw, prec, tokens, hidden, inter, topk, experts, tp, ep, dist    where dist is balanced: the two products
//     and the activation between
//   quantize   fw, prec, op, m, k           scale_matrix: 16 bits to 8
//   collectives  op, lib, ver, dtype, ranks, nodes, bytes    by NCCL on one node; bytes as nccl-tests count them: the
//     largest buffer of a rank. Sums of int8 are left out, for which no plan asks.
// Sizes are integers from 1 to 2^31, and no tensor has more than 1e15 elements. Adds the rows; throws Error "path:line:
// what, and what to do".
void read_kernel_rows(const std::string& path, KernelRows& rows);

// Returns the tables (.csv and .csv.gz) in a folder, sorted by name; of a file, the file itself.
std::vector<std::string> kernel_tables(const std::string& path);

}  // namespace orrery
