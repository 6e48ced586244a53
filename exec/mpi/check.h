#pragma once

#include <mpi.h>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {

// Throws Error "MPI_Iallreduce(...): MPI_ERR_COMM: invalid communicator". MPI reports errors only where the
// communicator has the handler MPI_ERRORS_RETURN, which MpiSession sets.
inline void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(fmt::format("{}: {}", call, std::string_view(text, static_cast<std::size_t>(length))));
}

}  // namespace orrery

// The one way to call MPI outside destructors; a macro, so that the call can be quoted.
#define ORRERY_CHECK_MPI(call) ::orrery::check_mpi((call), #call)
