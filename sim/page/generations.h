#pragma once

#include <string>
#include <vector>

#include "sim/generate/compare_text.h"
#include "sim/page/compare.h"
#include "sim/page/spec_parts.h"
#include "sim/print/table.h"

namespace orrery {

// Several predictions of generated text for a page: the rows, and the table of them that the command also prints.
struct GenerationRows {
  const std::vector<ComparedGeneration>& rows;
  const Table& table;
};

// The page of `orrery compare` for specs that generate text. specs: for each row the name and the values of its spec.
std::string compared_generations_page(const GenerationRows& of, const std::vector<ComparedSpec>& specs,
                                      const std::string& command, const std::string& version);

// The page of `orrery search` for a spec that generates text. of: the best layouts, the best first; none if no layout
// fits. spec: the spec of the best layout, or else the one that was searched; lines: what was tried, and the command
// that predicts the best layout again.
std::string found_generations_page(const GenerationRows& of, const Spec& spec, const std::vector<std::string>& lines,
                                   const SpecNotes& notes);

}  // namespace orrery
