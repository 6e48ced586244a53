#include "viz/timeline/shown_name.h"

#include "sim/summary/kernel_name.h"

namespace orrery {
namespace {

// Returns whether a name is that of a C++ function: mangled, with a return type, template arguments, or parameters
// right after its last letter. Names of our own ops have words in brackets after a blank.
bool is_signature(const std::string& name) {
  const std::size_t bracket = name.find('(');
  return name.starts_with("_Z") || name.starts_with("void ") || name.find("::") != std::string::npos ||
         (bracket != std::string::npos && bracket > 0 && name[bracket - 1] != ' ');
}

}  // namespace

std::string shown_name(const Label& label) {
  if (label.kind == Kind::host || !is_signature(label.name)) return label.name;
  std::string name = short_kernel_name(demangled(label.name));
  return name.empty() ? label.name : name;
}

}  // namespace orrery
