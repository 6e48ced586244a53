// Runs the tests of a program on all its ranks. Rank 0 reports; the others tell only their failures. One failure on any
// rank fails all of them.
#include <iostream>

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

}  // namespace

int main(int argc, char** argv) {
  const orrery::MpiSession session;
  testing::InitGoogleTest(&argc, argv);
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
