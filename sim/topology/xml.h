#pragma once

#include <string>

#include <boost/property_tree/ptree_fwd.hpp>

namespace orrery {

// Reads a file in XML that NCCL wrote. Throws Error with path and line for a text that is no XML, or is nested more
// deeply than NCCL nests its files.
boost::property_tree::ptree read_nccl_xml(const std::string& text, const std::string& path);

}  // namespace orrery
