#pragma once

#include <cstring>
#include <deque>
#include <vector>

#include "exec/combine.h"
#include "exec/move_queue.h"

namespace orrery::test {

// A queue on the host, where everything happens at once. What is scratch is full of ones, so that nobody takes it for
// zeros.
class HostQueue : public MoveQueue {
 public:
  void after(MoveQueue& other) override { waited_for.push_back(&other); }
  void copy(std::byte* to, const std::byte* from, Bytes bytes) override {
    std::memmove(to, from, static_cast<std::size_t>(bytes));
  }
  void combine(Element element, Reduction reduction, const std::byte* from, std::byte* into,
               std::int64_t elements) override {
    orrery::combine(element, reduction, from, into, elements);
  }
  std::byte* scratch(Bytes bytes) override {
    scratch_.assign(static_cast<std::size_t>(bytes), std::byte{0xff});
    return scratch_.data();
  }

  std::vector<MoveQueue*> waited_for;

 private:
  std::vector<std::byte> scratch_;
};

}  // namespace orrery::test
