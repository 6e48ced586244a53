#include "sim/kernels/kernel_rows.h"

#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

class Table {
 public:
  explicit Table(const std::string& text) { std::ofstream(path_) << text; }

  KernelRows read() const {
    KernelRows rows;
    read_kernel_rows(path_, rows);
    return rows;
  }
  std::string error() const {
    try {
      read();
    } catch (const Error& e) {
      return std::string(e.what()).substr(path_.size());
    }
    return "";
  }

 private:
  test::TemporaryFolder folder_;
  const std::string path_ = folder_.path("h100-sxm_kernels.csv");
};

TEST(KernelRows, ProductsOfAnyWidth) {
  const KernelRows r = Table(
                           "fw,ver,prec,m,n,k,us\ntrtllm,1,bfloat16,4096,1024,512,20\ntrtllm,1,fp8,32,1024,512,5\n"
                           "trtllm,1,int4_wo,32,1024,512,5\n")
                           .read();
  ASSERT_EQ(r.rows.size(), 2U);
  EXPECT_EQ(r.rows[0].gpu, "h100-sxm");
  EXPECT_EQ(r.rows[0].kind, "gemm");
  EXPECT_DOUBLE_EQ(r.rows[0].measured, 20e-6);
  ASSERT_EQ(r.rows[0].ops.size(), 1U);
  EXPECT_EQ(std::get<Gemm>(r.rows[0].ops[0].work).n, 1024);
  EXPECT_EQ(r.rows[1].kind, "gemm, few rows");
  EXPECT_EQ(r.rows[1].ops.size(), 2U);  // its operand is made 8 bits wide first
  EXPECT_EQ(r.rows[0].shapes, r.rows[1].shapes);
  EXPECT_EQ(r.not_covered.size(), 1U);
}

TEST(KernelRows, CollectivesOfOneNode) {
  const KernelRows r = Table(
                           "op,lib,ver,src,dtype,ranks,nodes,bytes,us,repeats\n"
                           "all_gather,nccl,2.29.2,NCCL,half,4,1,1048576,20,3\n"
                           "all_reduce,nccl,2.27.5,NCCL,int8,8,1,1048576,20,3\n"
                           "all_reduce,vllm,0.24.0,custom,bfloat16,8,1,1048576,20,3\n"
                           "alltoall,nccl,2.27.5,NCCL,half,16,2,1048576,20,3\n")
                           .read();
  ASSERT_EQ(r.rows.size(), 1U);
  EXPECT_EQ(r.rows[0].kind, "all_gather");
  EXPECT_EQ(r.rows[0].ranks, 4);
  EXPECT_EQ(r.rows[0].nccl_minor, 29);
  EXPECT_EQ(std::get<Collective>(r.rows[0].ops.front().work).bytes, 1048576);
  std::int64_t left_out = 0;
  for (const auto& [what, rows] : r.not_covered) left_out += rows;
  EXPECT_EQ(left_out, 3) << "a sum of int8, another library, and two nodes";
}

TEST(KernelRows, ProductsUnderLoadAreAKindOfTheirOwn) {
  const KernelRows r =
      Table("fw,ver,src,prec,m,n,k,us,power_w,power_limit_w\ntrtllm,1,torch,bfloat16,4096,1024,512,20,900,1000\n")
          .read();
  ASSERT_EQ(r.rows.size(), 1U);
  EXPECT_EQ(r.rows[0].kind, "gemm, sustained");
  EXPECT_EQ(r.rows[0].kernel, "torch");
}

TEST(KernelRows, TablesOfAFolder) {
  const test::TemporaryFolder folder;
  EXPECT_THROW(kernel_tables(folder.path()), Error);
  for (const char* name : {"b.csv", "a.csv.gz", "README.md"}) std::ofstream(folder.path(name)) << "us\n";
  const std::vector<std::string> tables = {folder.path("a.csv.gz"), folder.path("b.csv")};
  EXPECT_EQ(kernel_tables(folder.path()), tables);
  EXPECT_EQ(kernel_tables(tables.back()), std::vector<std::string>{tables.back()});
}

TEST(KernelRows, AttentionWithAndWithoutAMask) {
  const KernelRows causal =
      Table(
          "fw,prec,kv_prec,batch,seq,heads,kv_heads,head_dim,window,us\n"
          "vllm,bfloat16,bfloat16,2,1024,8,2,128,0,9\nvllm,bfloat16,bfloat16,2,1024,8,2,128,128,9\n")
          .read();
  ASSERT_EQ(causal.rows.size(), 1U);  // with a window that cuts the sequence it is another kernel
  const KernelRows whole = Table("fw,prec,batch,seq,heads,head_dim,us\nvllm,bfloat16,2,1024,8,128,9\n").read();
  ASSERT_EQ(whole.rows.size(), 1U);
  const Cost half = cost_of(causal.rows[0].ops[0].work, 2), all = cost_of(whole.rows[0].ops[0].work, 2);
  EXPECT_NEAR(all.flops / half.flops, 2, 0.01);
  EXPECT_EQ(std::get<FlashAttention>(causal.rows[0].ops[0].work).kv_heads, 2);
}

// A rank has 32 of 256 experts on 8 ranks, and an eighth of the rows.
TEST(KernelRows, ExpertsOfOneRank) {
  const KernelRows r = Table(
                           "fw,prec,tokens,hidden,inter,topk,experts,tp,ep,dist,us\n"
                           "trtllm,bfloat16,4096,7168,2048,8,256,1,8,balanced,900\n"
                           "trtllm,bfloat16,4096,7168,2048,8,256,1,8,power_law_1.2,900\n")
                           .read();
  ASSERT_EQ(r.rows.size(), 1U);
  const GroupedGemm& up = std::get<GroupedGemm>(r.rows[0].ops[1].work);  // after the rows are gathered
  EXPECT_EQ(up.groups, 32);
  EXPECT_EQ(up.rows, 4096);
  EXPECT_EQ(up.out, 4096);
  EXPECT_EQ(std::get<GroupedGemm>(r.rows[0].ops[3].work).out, 7168);
}

// Rows of other ranks' experts pass by; experts of 22 choices have no gate, whatever the kernel's name.
TEST(KernelRows, ExpertsOfOtherRanksPass) {
  const KernelRows r = Table(
                           "fw,src,prec,tokens,hidden,inter,topk,experts,tp,ep,dist,us\n"
                           "sglang,trtllm_moe,bfloat16,64,4096,2688,22,512,1,8,balanced,90\n")
                           .read();
  ASSERT_EQ(r.rows.size(), 1U);
  const GroupedGemm& up = std::get<GroupedGemm>(r.rows[0].ops[1].work);
  EXPECT_EQ(up.rows, 176);
  EXPECT_EQ(up.passed, 64 * 22 - 176);
  EXPECT_EQ(up.out, 2688);
}

// Kernels that choose the experts themselves may choose the same ones for all tokens, which their rows do not tell.
TEST(KernelRows, ExpertsOfKernelsThatChooseAreNotRead) {
  const char* header = "fw,src,prec,tokens,hidden,inter,topk,experts,tp,ep,dist,us\n";
  const auto rows = [&](const std::string& row) { return Table(header + row).read().rows.size(); };
  EXPECT_EQ(rows("trtllm,min_latency,nvfp4,64,4096,1536,8,128,1,1,balanced,90\n"), 0U);
  EXPECT_EQ(rows("trtllm,min_latency,nvfp4,64,5120,8192,1,16,1,1,balanced,90\n"), 1U);
  EXPECT_EQ(rows("vllm,flashinfer_trtllm,nvfp4,64,7168,2048,8,256,1,1,balanced,90\n"), 0U);
  EXPECT_EQ(rows("vllm,marlin,int4_wo,64,7168,2048,8,256,1,1,balanced,90\n"), 1U);
}

// Experts that no token chose are not read; weights in 4 bits are widened; some kernels have no gate.
TEST(KernelRows, ExpertsThatAreMetAndTheirFormats) {
  const KernelRows r = Table(
                           "fw,src,prec,tokens,hidden,inter,topk,experts,tp,ep,dist,us\n"
                           "vllm,marlin,int4_wo,4,7168,2048,8,256,1,1,balanced,90\n"
                           "vllm,cutlass,nvfp4,64,7168,2048,8,256,1,1,balanced,90\n"
                           "trtllm,nongated,bfloat16,64,7168,2048,8,256,1,1,balanced,90\n"
                           "vllm,x,w4a8,64,7168,2048,8,256,1,1,balanced,90\n")
                           .read();
  ASSERT_EQ(r.rows.size(), 3U);
  const GroupedGemm& few = std::get<GroupedGemm>(r.rows[0].ops[1].work);
  EXPECT_EQ(few.groups, 32);
  EXPECT_EQ(few.weights.code, WeightCode::int4);
  EXPECT_EQ(r.rows[0].ops[1].precision, Precision::bf16);
  EXPECT_EQ(std::get<GroupedGemm>(r.rows[1].ops[2].work).groups, 256);  // after the cast
  EXPECT_EQ(std::get<GroupedGemm>(r.rows[2].ops[1].work).out, 2048);
}

TEST(KernelRows, ErrorsSayWhereAndWhat) {
  EXPECT_EQ(Table("fw,prec,m,n,k\n").error(), ":1: has no column us; give a table of measured kernels with a header");
  EXPECT_EQ(Table("fw,prec,m,n,k,us\na,bfloat16,1,2\n").error(), ":2: has 4 cells under 6 columns");
  EXPECT_EQ(Table("fw,prec,m,n,k,us\na,bfloat16,1,2,x,3\n").error(), ":2: k: 'x' is no size or time");
}

// Sizes are whole, and products of them stay whole numbers.
TEST(KernelRows, SizesAreIntegersThatMemoriesHold) {
  const std::string header = "fw,prec,m,n,k,us\na,bfloat16,";
  for (const char* size : {"0", "1.5", "1e11", "4294967296"}) {
    EXPECT_EQ(Table(header + size + ",2,3,4\n").error(), fmt::format(":2: m: '{}' is no integer from 1 to 2^31", size));
  }
  EXPECT_EQ(Table(header + "2147483648,2147483648,64,4\n").error(),
            ":2: has a tensor of more than 1e15 elements; check the sizes");
  EXPECT_EQ(Table(header + "2147483648,64,64,4\n").read().rows.size(), 1U);
  EXPECT_NE(Table("op,fw,prec,m,k,us\nscale_matrix,a,fp8,2147483648,2147483648,1\n").error(), "");
  EXPECT_NE(Table("fw,prec,batch,seq,heads,head_dim,us\na,bfloat16,2147483648,2147483648,8,128,9\n").error(), "");
  const std::string experts = "fw,prec,tokens,hidden,inter,topk,experts,tp,ep,dist,us\na,bfloat16,";
  EXPECT_NE(Table(experts + "2147483648,7168,2048,2147483648,256,1,1,balanced,9\n").error(), "");
  EXPECT_NE(Table(experts + "64,7168,2048,8,256,0,1,balanced,9\n").error(), "");
}

TEST(KernelRows, NoKernelTakesLessThanANanosecond) {
  const KernelRows r = Table("fw,prec,m,n,k,us\na,bfloat16,1,2,3,0\na,bfloat16,1,2,3,1e-300\n").read();
  EXPECT_TRUE(r.rows.empty());
  EXPECT_EQ(r.not_covered.begin()->second, 2);
}

TEST(KernelRows, NamesThatCannotBePrintedAreRefused) {
  const std::string refused = ":2: holds control characters or is no UTF-8; write the table again";
  EXPECT_EQ(Table("fw,prec,m,n,k,us\na\xff,bfloat16,1,2,3,4\n").error(), refused);
  EXPECT_EQ(Table("fw,prec,m,n,k,us\na,bfloat16,1,2,\x1b[2J,4\n").error(), refused);
  std::string letters;
  for (int i = 0; i < 30; ++i) letters += "\u00e9";
  EXPECT_EQ(Table("fw,prec,m,n,k,us\na,bfloat16,1,2," + letters + ",4\n").error(),
            ":2: k: the cell is no size or time");
}

TEST(KernelRows, EightBitCachesAndOtherCastsAreNotCovered) {
  const KernelRows attention = Table(
                                   "fw,prec,kv_prec,batch,seq,heads,kv_heads,head_dim,window,us\n"
                                   "vllm,bfloat16,fp8,2,1024,8,2,128,0,9\n")
                                   .read();
  EXPECT_TRUE(attention.rows.empty());
  EXPECT_TRUE(attention.not_covered.begin()->first.ends_with("bfloat16 with a cache in fp8"));
  const KernelRows casts =
      Table("op,fw,prec,m,k,us\nscale_matrix,a,nvfp4,64,64,1\nscale_matrix,a,fp8,64,64,1\n").read();
  EXPECT_EQ(casts.rows.size(), 1U);
}

}  // namespace
}  // namespace orrery
