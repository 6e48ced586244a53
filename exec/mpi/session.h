#pragma once

#include "exec/mpi/check.h"

namespace orrery {

// MPI from its start to its end, once per process: the first value in main, outliving every transport. Calls may come
// from any thread, but never two at once. Finalizing waits for the other ranks, so a rank that fails alone calls
// abort(), which ends them all. Throws Error where MPI cannot be had with that thread level.
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
