#include "sim/launch/import.h"

#include <string>

#include "models/base/error.h"
#include "tests/fuzz/fuzz.h"

// The bytes as a file of every syntax, alone and with the cluster that it runs on.
void orrery::fuzz::read_launch(std::string_view bytes) {
  const std::string text(bytes);
  std::string refused;
  for (const char* path : {"x.sh", "x.yaml", "x.toml", "x"}) {
    try {
      spec_yaml(import_launch({{path, text}}, "2xdgx-h100").values, {});
    } catch (const Error& error) {
      refused = error.what();
    }
  }
  if (!refused.empty()) throw Error(refused);
}
