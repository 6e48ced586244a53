// Runs the tests of one source file, named without its extension, on all ranks: `mpi_tests transport_test`;
// --gtest_filter selects others, and `mpi_tests strategies_test 2` runs every second case of each list of cases alone:
// which ones depends on the commit, so that commits after each other run them all.
// Rank 0 reports; the other ranks tell only their failures. One failure on any rank fails the whole run.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "exec/mpi/session.h"
#include "sim/cli/commit.h"

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

// A whole number that is another one for another commit: the FNV-1a hash of its name.
unsigned number_of_commit() {
  unsigned hash = 2166136261U;
  for (const char* c = orrery::kCommit; *c != '\0'; ++c) hash = (hash ^ static_cast<unsigned char>(*c)) * 16777619U;
  return hash;
}

// The filter that selects the tests of tests/exec/mpi/SOURCE.cpp, of lists of cases every so-many-th; empty if there
// are none.
std::string tests_of(std::string_view source, int every) {
  const std::string file = "/mpi/" + std::string(source) + ".cpp";
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    const int parts = std::max(1, std::min(every, suite.total_test_count()));
    const int part = static_cast<int>(number_of_commit() % static_cast<unsigned>(parts));
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (!std::string_view(test.file()).ends_with(file)) continue;
      if (test.value_param() != nullptr && t % parts != part) continue;
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
    const std::string filter = tests_of(argv[1], argc > 2 ? std::max(1, std::atoi(argv[2])) : 1);
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
