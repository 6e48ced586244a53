#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace orrery {

// Numbers for the texts of trace files, in the order in which the texts first appear. The same text has the same number
// in all files of a summary.
class Names {
 public:
  std::uint32_t number_of(std::string_view text);
  std::optional<std::uint32_t> find(std::string_view text) const;
  const std::string& text(std::uint32_t number) const { return texts_[number]; }
  std::size_t size() const { return texts_.size(); }

 private:
  struct Hash {
    std::size_t operator()(std::string_view text) const;
  };
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, std::uint32_t, Hash> numbers_;
};

}  // namespace orrery
