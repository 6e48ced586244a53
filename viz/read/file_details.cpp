#include "viz/read/file_details.h"

#include <algorithm>

#include "models/base/error.h"
#include "models/trace/json_scan.h"
#include "viz/read/event_facts.h"

namespace orrery {

bool FileDetails::opened() const {
  try {
    if (!file_ && error_.empty()) file_ = std::make_shared<const MappedText>(path_);
  } catch (const Error& e) {
    error_ = e.what();
  }
  return file_ != nullptr;
}

Details FileDetails::details(std::uint64_t key) const {
  if (!opened()) return {{"details", error_}};
  JsonScan scan(file_->text(), std::min<std::size_t>(key, file_->text().size()));
  // Another file may lie there by now, in which a value could be as long as the rest of the file.
  Details found = scan.peek() == '{' ? members_of_object(scan.raw()) : Details{};
  if (const std::string damage = file_->damage(); !damage.empty()) found.emplace_back("file", damage);
  return found;
}

EventIds FileDetails::ids(std::uint64_t key) const {
  return opened() ? ids_of_event(file_->text(), std::min<std::size_t>(key, file_->text().size())) : EventIds{};
}

std::string FileDetails::shape(std::uint64_t key) const {
  if (!opened()) return "";
  JsonScan scan(file_->text(), std::min<std::size_t>(key, file_->text().size()));
  return scan.peek() == '{' ? shape_of_event(scan.raw()) : "";
}

}  // namespace orrery
