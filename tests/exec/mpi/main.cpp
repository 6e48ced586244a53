// Runs the tests of one source file, named without its extension, on all ranks: `mpi_tests transport_test`;
// --gtest_filter selects others, and `mpi_tests strategies_test 3 1` runs of each list of cases every third alone, from
// the second on (another last number counts modulo the first).
// Rank 0 reports; the other ranks tell only their failures. One failure on any rank fails the whole run.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "exec/mpi/session.h"

namespace {

class FailuresOnly : public testing::EmptyTestEventListener {
 public:
  explicit FailuresOnly(int rank) : rank_(rank) {}

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::cerr << "rank " << rank_ << ": " << (result.file_name() != nullptr ? result.file_name() : "unknown") << ":"
              << result.line_number() << ": " << result.summary() << std::endl;
  }

 private:
  int rank_ = 0;
};

// The filter that selects the tests of tests/exec/mpi/SOURCE.cpp, of lists of cases every so-many-th, beginning with
// number `first`; empty if there are none.
std::string tests_of(std::string_view source, int every, int first) {
  const std::string file = "/mpi/" + std::string(source) + ".cpp";
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    const int parts = std::max(1, std::min(every, suite.total_test_count()));
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (!std::string_view(test.file()).ends_with(file)) continue;
      if (test.value_param() != nullptr && t % parts != first % parts) continue;
      filter += std::string(suite.name()) + "." + test.name() + ":";
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  const orrery::MpiSession session;
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1 && testing::GTEST_FLAG(filter) == "*") {
    const auto number = [&](int i) { return argc > i ? std::max(0, std::atoi(argv[i])) : 0; };
    const std::string filter = tests_of(argv[1], std::max(1, number(2)), number(3));
    if (filter.empty()) {
      std::cerr << "mpi_tests: no test is in tests/exec/mpi/" << argv[1] << ".cpp" << std::endl;
      return 2;
    }
    testing::GTEST_FLAG(filter) = filter;
  }
  if (session.rank() > 0) {
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOnly(session.rank()));
  }
  int failed = RUN_ALL_TESTS();
  int any = 0;
  ORRERY_CHECK_MPI(MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, session.world()));
  return any;
}
