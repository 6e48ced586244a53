#pragma once

#include <mpi.h>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {

// Throws an Error such as "MPI_Iallreduce(...): MPI_ERR_COMM: invalid communicator". MPI returns errors only if the
// communicator has the error handler MPI_ERRORS_RETURN, which MpiSession sets.
inline void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(fmt::format("{}: {}", call, std::string_view(text, static_cast<std::size_t>(length))));
}

}  // namespace orrery

// All MPI calls outside destructors go through this macro, which puts the source code of the call into the error
// message.
#define ORRERY_CHECK_MPI(call) ::orrery::check_mpi((call), #call)
