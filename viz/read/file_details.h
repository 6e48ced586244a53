#pragma once

#include <memory>
#include <string>

#include "viz/read/mapped_text.h"
#include "viz/timeline/timeline.h"

namespace orrery {

// A source of events' details, which it reads from the trace file at the offset of the event's text. If the file is not
// open, it is opened when details are first needed.
class FileDetails : public DetailSource {
 public:
  explicit FileDetails(std::shared_ptr<const MappedText> file) : file_(std::move(file)) {}
  explicit FileDetails(std::string path) : path_(std::move(path)) {}
  Details details(std::uint64_t key) const override;
  EventIds ids(std::uint64_t key) const override;
  std::string shape(std::uint64_t key) const override;

 private:
  // Opens the file if it is not open; returns whether it can be read.
  bool opened() const;

  std::string path_;
  mutable std::shared_ptr<const MappedText> file_;
  mutable std::string error_;
};

}  // namespace orrery
