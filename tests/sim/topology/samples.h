#pragma once

// Small files in the layouts of the tools that cluster_facts.h names.
namespace orrery::samples {

inline constexpr const char* kNvidiaSmi =
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tNIC2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tNV18\tNV18\tPIX\tNODE\tSYS\t0-47\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tNV18\tNV18\tPIX\tNODE\tSYS\t0-47\t0\t\tN/A\n"
    "GPU2\tNV18\tNV18\t X \tNV18\tNODE\tPIX\tSYS\t0-47\t0\t\tN/A\n"
    "GPU3\tNV18\tNV18\tNV18\t X \tNODE\tPIX\tSYS\t0-47\t0\t\tN/A\n"
    "NIC0\tPIX\tPIX\tNODE\tNODE\t X \tNODE\tSYS\t\t\t\t\n"
    "NIC1\tNODE\tNODE\tPIX\tPIX\tNODE\t X \tSYS\t\t\t\t\n"
    "NIC2\tSYS\tSYS\tSYS\tSYS\tSYS\tSYS\t X \t\t\t\t\n"
    "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe\n"
    "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n  NIC2: mlx5_2\n";

inline constexpr const char* kNcclTopology =
    "<system version=\"1\">\n"
    "  <cpu numaid=\"0\" affinity=\"ffff\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">\n"
    "    <pci busid=\"0000:07:00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
    "      <pci busid=\"0000:0a:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
    "        <gpu dev=\"0\" sm=\"90\" rank=\"0\" gdr=\"1\"><nvlink target=\"0000:05:00.0\" count=\"18\" "
    "tclass=\"0x068000\"/></gpu>\n"
    "      </pci>\n"
    "      <pci busid=\"0000:0b:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
    "        <gpu dev=\"1\" sm=\"90\" rank=\"1\" gdr=\"1\"/>\n"
    "      </pci>\n"
    "      <pci busid=\"0000:0c:00.0\" class=\"0x020700\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
    "        <nic><net name=\"mlx5_0\" dev=\"0\" speed=\"400000\" port=\"1\" latency=\"0.000000\" guid=\"0x1\" "
    "maxconn=\"131072\" gdr=\"1\"/></nic>\n"
    "      </pci>\n"
    "    </pci>\n"
    "  </cpu>\n"
    "</system>\n";

inline constexpr const char* kNcclGraphs =
    "<graphs version=\"1\">\n"
    "  <graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"16\" speedintra=\"20\" speedinter=\"24\" "
    "latencyinter=\"0\" typeintra=\"NVL\" typeinter=\"PIX\" samechannels=\"0\">\n"
    "    <channel><net dev=\"0\"/><gpu dev=\"0\"/></channel>\n"
    "  </graph>\n"
    "</graphs>\n";

// Two rails: hosts a and b have a NIC on each of two leaves, which have two links each to one spine.
inline constexpr const char* kIbnetdiscover =
    "#\n# Topology file: generated on Fri Nov 27 12:00:00 2026\n#\n"
    "vendid=0x2c9\ndevid=0xd2f2\nsysimgguid=0x1\nswitchguid=0x1(1)\n"
    "Switch\t64 \"S-0000000000000001\"\t\t# \"MF0;leaf1:MQM9700/U1\" enhanced port 0 lid 1 lmc 0\n"
    "[1]\t\"H-000000000000000a\"[1](a1) \t\t# \"a mlx5_0\" lid 11 4xNDR\n"
    "[2]\t\"H-000000000000000b\"[1](b1) \t\t# \"b mlx5_0\" lid 12 4xNDR\n"
    "[65]\t\"H-b8599f0300000001\"[1](c1) \t\t# \"Mellanox Technologies Aggregation Node\" lid 41 4xNDR\n"
    "[33]\t\"S-0000000000000003\"[1]\t\t# \"MF0;spine:MQM9700/U1\" lid 3 4xNDR\n"
    "[34]\t\"S-0000000000000003\"[2]\t\t# \"MF0;spine:MQM9700/U1\" lid 3 4xNDR\n\n"
    "Switch\t64 \"S-0000000000000002\"\t\t# \"MF0;leaf2:MQM9700/U1\" enhanced port 0 lid 2 lmc 0\n"
    "[1]\t\"H-000000000000001a\"[1](a2) \t\t# \"a mlx5_1\" lid 21 4xNDR\n"
    "[2]\t\"H-000000000000001b\"[1](b2) \t\t# \"b mlx5_1\" lid 22 4xNDR\n"
    "[33]\t\"S-0000000000000003\"[3]\t\t# \"MF0;spine:MQM9700/U1\" lid 3 4xNDR\n"
    "[34]\t\"S-0000000000000003\"[4]\t\t# \"MF0;spine:MQM9700/U1\" lid 3 4xNDR\n\n"
    "Switch\t64 \"S-0000000000000003\"\t\t# \"MF0;spine:MQM9700/U1\" enhanced port 0 lid 3 lmc 0\n"
    "[65]\t\"H-b8599f0300000002\"[1](c2) \t\t# \"Mellanox Technologies Aggregation Node\" lid 43 4xNDR\n"
    "[1]\t\"S-0000000000000001\"[33]\t\t# \"MF0;leaf1:MQM9700/U1\" lid 1 4xNDR\n"
    "[2]\t\"S-0000000000000001\"[34]\t\t# \"MF0;leaf1:MQM9700/U1\" lid 1 4xNDR\n"
    "[3]\t\"S-0000000000000002\"[33]\t\t# \"MF0;leaf2:MQM9700/U1\" lid 2 4xNDR\n"
    "[4]\t\"S-0000000000000002\"[34]\t\t# \"MF0;leaf2:MQM9700/U1\" lid 2 4xNDR\n\n"
    "Ca\t1 \"H-000000000000000a\"\t\t# \"a mlx5_0\"\n[1](a1) \t\"S-0000000000000001\"[1]\t\t# lid 11 lmc 0 \"leaf1\" "
    "lid 1 4xNDR\n";

// Two parts of the spine of four leaves each, and a switch above both.
inline constexpr const char* kSlurm =
    "# switches\n"
    "SwitchName=s0 Nodes=n[000-031] LinkSpeed=900\n"
    "SwitchName=s1 Nodes=n[032-063]\n"
    "switchname=s2 nodes=n[064-095]\n"
    "SwitchName=s3 Nodes=n[096-125,130,131]\n"
    "SwitchName=s4 Nodes=m[000-031]\nSwitchName=s5 Nodes=m[032-063]\n"
    "SwitchName=s6 Nodes=m[064-095]\nSwitchName=s7 \\\n  Nodes=m[096-127]\n"
    "SwitchName=p0 Switches=s[0-3]\n"
    "SwitchName=p1 Switches=s4,s[5-7]\n"
    "SwitchName=core Switches=p[0-1]\n";

inline constexpr const char* kLldp =
    R"({"lldp": {"interface": [
  {"eth0": {"via": "LLDP", "chassis": {"leaf-1": {"id": {"type": "mac", "value": "00:01"}, "descr": "NOS"}}, "port": {"id": {"value": "swp1"}}}},
  {"eth1": {"via": "LLDP", "chassis": {"leaf-2": {"id": {"type": "mac", "value": "00:02"}}}, "port": {"id": {"value": "swp1"}}}}]}})";

}  // namespace orrery::samples
