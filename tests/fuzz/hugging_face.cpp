#include "models/spec/spec.h"

#include <string>

#include "models/families/hugging_face.h"
#include "tests/fuzz/fuzz.h"

void orrery::fuzz::read_hugging_face(std::string_view bytes) { parse_hugging_face(std::string(bytes), "config.json"); }
