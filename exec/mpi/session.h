#pragma once

#include "exec/mpi/check.h"

namespace orrery {

// Initialises MPI and finalises it, once per process. The object is the first in main, so that it outlives every
// transport. Any thread may call MPI, but never two at the same time. MPI_Finalize waits for the other ranks, so a rank
// that fails alone calls abort(), which ends all ranks. Throws Error if MPI does not support MPI_THREAD_SERIALIZED.
class MpiSession {
 public:
  MpiSession() {
    int provided = MPI_THREAD_SINGLE;
    ORRERY_CHECK_MPI(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided));
    if (provided < MPI_THREAD_SERIALIZED) {
      throw Error("MPI: this library offers no MPI_THREAD_SERIALIZED; install one built with threads");
    }
    ORRERY_CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    ORRERY_CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
    ORRERY_CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size_));
  }
  ~MpiSession() { MPI_Finalize(); }
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  MPI_Comm world() const { return MPI_COMM_WORLD; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  void abort(int code) const { MPI_Abort(MPI_COMM_WORLD, code); }

 private:
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace orrery
