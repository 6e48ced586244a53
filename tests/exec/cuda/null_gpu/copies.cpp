// The runtime's copies and clearings. They move nothing; what comes to the host are zeros, and late.
#include <cstring>

#include <fmt/format.h>

#include "tests/exec/cuda/null_gpu/machine.h"

namespace orrery::null_gpu {
namespace {

constexpr double kCopy = 3e-6;              // seconds of a copy
constexpr std::size_t kWatched = 64 << 10;  // largest copy to the device whose source is held against what it was

// The kind that cudaMemcpyDefault stands for; page-locked memory is the host's.
cudaMemcpyKind kind_of(const void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (kind != cudaMemcpyDefault) return kind;
  if (on_device(to, bytes)) return on_device(from, bytes) ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
  return on_device(from, bytes) ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

// The fault of a copy whose sides are not those that its kind names.
const char* wrong_side(const void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const bool to_device = on_device(to, bytes), from_device = on_device(from, bytes);
  switch (kind) {
    case cudaMemcpyDeviceToDevice:
      return !to_device ? "does not write device memory" : !from_device ? "does not read device memory" : nullptr;
    case cudaMemcpyHostToDevice:
      return !to_device ? "does not write device memory" : from_device ? "reads device memory" : nullptr;
    case cudaMemcpyDeviceToHost:
      return to_device ? "writes device memory" : !from_device ? "does not read device memory" : nullptr;
    default:
      return to_device || from_device ? "touches device memory" : nullptr;
  }
}

const char* name_of(cudaMemcpyKind kind) {
  return kind == cudaMemcpyDeviceToDevice ? "device to device"
         : kind == cudaMemcpyDeviceToHost ? "device to host"
                                          : "host to host";
}

// Takes part in the copy as the host: zeros arrive late, and what the host gives must stay as it is until it was read,
// unless a host function before the copy still writes it.
void host_side(Stream& stream, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDeviceToHost) enqueue_call(stream, [=] { std::memset(to, 0, bytes); });
  const HostCall* before = stream.last.behind.get();
  if (kind != cudaMemcpyHostToDevice || bytes > kWatched || (before != nullptr && !before->ended)) return;
  const std::string was(static_cast<const char*>(from), bytes);
  enqueue_call(stream, [=] {
    if (std::memcmp(from, was.data(), bytes) != 0)
      complain("the host changes what an asynchronous copy to the device has not read yet");
  });
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind asked, Stream* stream, bool waits) {
  if (stream == nullptr) return error(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return cudaSuccess;
  const cudaMemcpyKind kind = kind_of(to, from, bytes, asked);
  const std::string name = kind == cudaMemcpyHostToDevice ? kFromHost : fmt::format("a copy from {}", name_of(kind));
  if (const char* wrong = wrong_side(to, from, bytes, kind)) {
    complain(fmt::format("{} {}", name, wrong));
    return error(cudaErrorInvalidValue);
  }
  const auto is_pageable = [&](const void* at) { return !on_device(at, bytes) && !is_pinned(at, bytes); };
  const bool pageable = is_pageable(to) || is_pageable(from);
  if (pageable && !waits) complain(fmt::format("{} is asynchronous, but the host's memory is pageable", name));
  enqueue(*stream, kCopy);
  access(*stream, name, from, bytes, false);
  access(*stream, name, to, bytes, true);
  if (!waits) host_side(*stream, to, from, bytes, kind);
  return cudaSuccess;
}

cudaError_t set(void* to, std::size_t bytes, Stream* stream) {
  if (stream == nullptr) return error(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return cudaSuccess;
  if (!on_device(to, bytes)) {
    complain("a clearing goes beyond an allocation of the device");
    return error(cudaErrorInvalidValue);
  }
  enqueue(*stream, kCopy);
  access(*stream, "a clearing", to, bytes, true);
  return cudaSuccess;
}

}  // namespace
}  // namespace orrery::null_gpu

using namespace orrery::null_gpu;

extern "C" {

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (fails("cudaMemcpy")) return error(cudaErrorUnknown);
  Moment end;
  {
    const Lock lock(gpu().mutex);
    Stream& stream = gpu().null_stream;
    if (const cudaError_t code = copy(to, from, bytes, kind, &stream, true); code != cudaSuccess) return code;
    end = stream.last;
  }
  wait_until(end);
  if (kind == cudaMemcpyDeviceToHost) std::memset(to, 0, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (fails("cudaMemcpyAsync")) return error(cudaErrorUnknown);
  const Lock lock(gpu().mutex);
  return copy(to, from, bytes, kind, stream_of(stream), false);
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t rows, cudaMemcpyKind kind, cudaStream_t handle) {
  if (fails("cudaMemcpy2DAsync")) return error(cudaErrorUnknown);
  const Lock lock(gpu().mutex);
  Stream* stream = stream_of(handle);
  if (stream == nullptr) return error(cudaErrorInvalidResourceHandle);
  if (rows == 0 || width == 0) return cudaSuccess;
  if (width > to_pitch || width > from_pitch) {
    complain("a copy of rows is wider than the distance between rows");
    return error(cudaErrorInvalidPitchValue);
  }
  if (kind != cudaMemcpyDeviceToDevice || !on_device(to, (rows - 1) * to_pitch + width) ||
      !on_device(from, (rows - 1) * from_pitch + width)) {
    complain("a copy of rows goes beyond an allocation of the device");
    return error(cudaErrorInvalidValue);
  }
  enqueue(*stream, kCopy);
  for (std::size_t r = 0; r < rows; ++r) {
    access(*stream, "a copy of rows", static_cast<const char*>(from) + r * from_pitch, width, false);
    access(*stream, "a copy of rows", static_cast<char*>(to) + r * to_pitch, width, true);
  }
  return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int, std::size_t bytes) {
  if (fails("cudaMemset")) return error(cudaErrorUnknown);
  const Lock lock(gpu().mutex);
  return set(to, bytes, &gpu().null_stream);
}

cudaError_t cudaMemsetAsync(void* to, int, std::size_t bytes, cudaStream_t stream) {
  if (fails("cudaMemsetAsync")) return error(cudaErrorUnknown);
  const Lock lock(gpu().mutex);
  return set(to, bytes, stream_of(stream));
}
}
