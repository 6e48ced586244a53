#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace orrery {

// Values that are made once for each name and kept: what built-in files say, which take longer to read than to use.
// Several threads may ask; a value that is being made holds the others up.
template <class T>
class OnceByName {
 public:
  // Returns the value of a name, from make() the first time; what make() throws is thrown on, and nothing is kept.
  template <class Make>
  const T& of(std::string_view name, const Make& make) {
    const std::lock_guard guard(lock_);
    const auto at = made_.find(name);
    return at != made_.end() ? at->second : made_.emplace(name, make()).first->second;
  }

 private:
  std::mutex lock_;
  std::map<std::string, T, std::less<>> made_;
};

}  // namespace orrery
