// The runtime's streams, events and host functions, and its questions about the device.
#include <cstring>

#include <fmt/format.h>

#include "tests/exec/cuda/null_gpu/machine.h"

#undef cudaGetDeviceProperties

namespace orrery::null_gpu {
namespace {

constexpr double kRecord = 1e-6;  // seconds that the mark of an event takes
constexpr int kMultiprocessors = 132;

// The event of a handle, recorded or not; complains about one that is none.
Event* event_of(cudaEvent_t handle, const char* function, bool recorded) {
  auto* event = reinterpret_cast<Event*>(handle);
  if (!gpu().events.contains(event)) {
    complain(fmt::format("{} of what is no event", function));
    return nullptr;
  }
  if (recorded && !event->recorded) complain(fmt::format("{} of an event that was never recorded", function));
  return event;
}

}  // namespace

Stream* stream_of(cudaStream_t handle) {
  auto* stream = reinterpret_cast<Stream*>(handle);
  if (stream == nullptr) return &gpu().null_stream;
  if (gpu().streams.contains(stream)) return stream;
  complain("use of what is no stream");
  return nullptr;
}

}  // namespace orrery::null_gpu

using namespace orrery::null_gpu;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  if (fails("cudaStreamCreateWithFlags")) return error(cudaErrorUnknown);
  const Lock lock(gpu().mutex);
  if (flags != cudaStreamNonBlocking) complain("a stream that waits for the legacy stream");
  auto* stream = new Stream;
  stream->queue = gpu().queues++;
  gpu().streams.insert(stream);
  *handle = reinterpret_cast<cudaStream_t>(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  const Lock lock(gpu().mutex);
  Stream* stream = stream_of(handle);
  if (stream == nullptr) return error(cudaErrorInvalidResourceHandle);
  if (!stream->last.reached()) complain("a stream is destroyed while it has work");
  gpu().null_stream.last.wait_for(stream->last);
  gpu().streams.erase(stream);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  const bool failing = fails("cudaStreamSynchronize");  // it then reports what has failed on the way
  Moment end;
  {
    const Lock lock(gpu().mutex);
    const Stream* stream = stream_of(handle);
    if (stream == nullptr) return error(cudaErrorInvalidResourceHandle);
    end = stream->last;
  }
  wait_until(end);
  return failing ? error(cudaErrorUnknown) : cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  const bool failing = fails("cudaDeviceSynchronize");
  wait_until(everything());
  return failing ? error(cudaErrorUnknown) : cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned flags) {
  if (fails("cudaEventCreateWithFlags")) return error(cudaErrorUnknown);
  const Lock lock(gpu().mutex);
  auto* event = new Event;
  event->timed = (flags & cudaEventDisableTiming) == 0;
  gpu().events.insert(event);
  *handle = reinterpret_cast<cudaEvent_t>(event);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  const Lock lock(gpu().mutex);
  Event* event = event_of(handle, "cudaEventDestroy", false);
  if (event == nullptr) return error(cudaErrorInvalidResourceHandle);
  gpu().events.erase(event);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t on) {
  if (fails("cudaEventRecord")) return error(cudaErrorUnknown);
  const Lock lock(gpu().mutex);
  Stream* stream = stream_of(on);
  Event* event = event_of(handle, "cudaEventRecord", false);
  if (stream == nullptr || event == nullptr) return error(cudaErrorInvalidResourceHandle);
  enqueue(*stream, kRecord);
  event->recorded = true;
  event->moment = stream->last;
  event->after = stream->did;
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  if (fails("cudaEventSynchronize")) return error(cudaErrorUnknown);
  Moment moment;
  {
    const Lock lock(gpu().mutex);
    const Event* event = event_of(handle, "cudaEventSynchronize", true);
    if (event == nullptr) return error(cudaErrorInvalidResourceHandle);
    moment = event->moment;
  }
  wait_until(moment);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  if (fails("cudaEventQuery")) return error(cudaErrorUnknown);
  const Lock lock(gpu().mutex);
  const Event* event = event_of(handle, "cudaEventQuery", true);
  if (event == nullptr) return error(cudaErrorInvalidResourceHandle);
  if (!event->moment.reached()) return error(cudaErrorNotReady);
  seen_by_host(event->moment);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t on, cudaEvent_t handle, unsigned) {
  if (fails("cudaStreamWaitEvent")) return error(cudaErrorUnknown);
  const Lock lock(gpu().mutex);
  Stream* stream = stream_of(on);
  const Event* event = event_of(handle, "cudaStreamWaitEvent", true);
  if (stream == nullptr || event == nullptr) return error(cudaErrorInvalidResourceHandle);
  if (!includes(stream->last.clock, event->moment.clock)) {
    ++gpu().called[kOrders];
    if (gpu().left_out > 0 && --gpu().left_out == 0) {
      const auto name = [](const std::string* did) { return did == nullptr ? "its begin" : did->c_str(); };
      gpu().left_out_wait = fmt::format("a stream that did {} waits for {}", name(stream->did), name(event->after));
      return cudaSuccess;
    }
  }
  stream->last.wait_for(event->moment);
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  if (fails("cudaEventElapsedTime")) return error(cudaErrorUnknown);
  const Lock lock(gpu().mutex);
  const Event* a = event_of(from, "cudaEventElapsedTime", true);
  const Event* b = event_of(to, "cudaEventElapsedTime", true);
  if (a == nullptr || b == nullptr) return error(cudaErrorInvalidResourceHandle);
  if (!a->timed || !b->timed) {
    complain("cudaEventElapsedTime of events without times");
    return error(cudaErrorInvalidResourceHandle);
  }
  if (!a->moment.reached() || !b->moment.reached()) {
    complain("cudaEventElapsedTime of events that have not been reached");
    return error(cudaErrorNotReady);
  }
  *ms = static_cast<float>((b->moment.reached_at() - a->moment.reached_at()) * 1e3);
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t on, cudaHostFn_t function, void* data) {
  if (fails("cudaLaunchHostFunc")) return error(cudaErrorUnknown);
  const Lock lock(gpu().mutex);
  Stream* stream = stream_of(on);
  if (stream == nullptr) return error(cudaErrorInvalidResourceHandle);
  enqueue(*stream, kRecord);
  enqueue_call(*stream, [=] { function(data); });
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (fails("cudaGetDeviceCount")) return error(cudaErrorUnknown);
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int number) {
  if (fails("cudaSetDevice")) return error(cudaErrorUnknown);
  return number == 0 ? cudaSuccess : error(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  if (fails("cudaGetDeviceProperties")) return error(cudaErrorUnknown);
  *properties = {};
  std::strcpy(properties->name, kName);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* bus, int size, int) {
  if (fails("cudaDeviceGetPCIBusId")) return error(cudaErrorUnknown);
  if (size < static_cast<int>(sizeof kBus)) return error(cudaErrorInvalidValue);
  std::strcpy(bus, kBus);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  if (fails("cudaDeviceGetAttribute")) return error(cudaErrorUnknown);
  *value = kMultiprocessors;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  const cudaError_t code = last_error();
  error(cudaSuccess);
  return code;
}

const char* cudaGetErrorString(cudaError_t code) {
  switch (code) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorUnknown:
      return "unknown error";
    default:
      return "error";
  }
}
}
