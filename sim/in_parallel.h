#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace orrery {

// f(worker, i) for every i below count, each by whichever of so many workers is free. Throws what the first i threw.
template <class F>
void in_parallel(std::size_t workers, std::size_t count, F f) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::exception_ptr> errors(count);
  const auto work = [&](std::size_t worker) {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        f(worker, i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  std::vector<std::jthread> others;
  for (std::size_t w = 1; w < std::min(workers, count); ++w) others.emplace_back(work, w);
  work(0);
  others.clear();  // joins
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace orrery
