#pragma once

#include <cstddef>
#include <utility>

#include "exec/cuda/check.h"
#include "models/base/units.h"

// Owners of CUDA resources (memory, streams, events). They can be moved but not copied; destructors ignore errors.
namespace orrery::cuda {

class Stream {
 public:
  Stream() { ORRERY_CHECK_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  explicit Event(bool timed) {
    ORRERY_CHECK_CUDA(cudaEventCreateWithFlags(&event_, timed ? cudaEventDefault : cudaEventDisableTiming));
  }
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// Uninitialised device memory, or page-locked host memory, which asynchronous memcpys can use.
class Memory {
 public:
  enum class Place { device, host };
  Memory() = default;
  Memory(Place place, Bytes bytes) : place_(place), bytes_(bytes) {
    if (bytes == 0) return;
    void* at = nullptr;
    if (place == Place::device)
      ORRERY_CHECK_CUDA(cudaMalloc(&at, static_cast<std::size_t>(bytes)));
    else
      ORRERY_CHECK_CUDA(cudaMallocHost(&at, static_cast<std::size_t>(bytes)));
    at_ = static_cast<std::byte*>(at);
  }
  ~Memory() {
    if (at_ == nullptr) return;
    if (place_ == Place::device)
      cudaFree(at_);
    else
      cudaFreeHost(at_);
  }
  Memory(Memory&& other) noexcept
      : place_(other.place_), bytes_(std::exchange(other.bytes_, 0)), at_(std::exchange(other.at_, nullptr)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(place_, other.place_);
    std::swap(bytes_, other.bytes_);
    std::swap(at_, other.at_);
    return *this;
  }
  std::byte* data() const { return at_; }
  Bytes bytes() const { return bytes_; }

 private:
  Place place_ = Place::device;
  Bytes bytes_ = 0;
  std::byte* at_ = nullptr;
};

}  // namespace orrery::cuda
