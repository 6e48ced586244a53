#pragma once

#include <span>
#include <string_view>

// Readers of input, each run on any bytes. A reader may refuse them by an orrery::Error of one line in our own words
// (take() looks at it); whatever else escapes, or ends the program, is a fault. Each reader has a source file of its
// own and a folder of small inputs, tests/data/fuzz/NAME. replay.cpp runs all of those on every test run;
// libfuzzer.cpp makes a program of one reader that looks for more.
namespace orrery::fuzz {

void read_archive(std::string_view bytes);            // the viewer's cache
void read_chakra(std::string_view bytes);             // an execution trace to import and play
void read_chrome_trace(std::string_view bytes);       // traces that the viewer opens
void read_cluster_facts(std::string_view bytes);      // what a cluster's tools print
void read_forwarding_tables(std::string_view bytes);  // ibroute, dump_lfts.sh
void read_hugging_face(std::string_view bytes);       // a config.json
void read_ibnetdiscover(std::string_view bytes);
void read_kernel_rows(std::string_view bytes);          // a table of measured kernels
void read_kineto(std::string_view bytes);               // a trace to import
void read_launch(std::string_view bytes);               // launch files to import
void read_lldp(std::string_view bytes);                 // lldpctl -f json
void read_loads(std::string_view bytes);                // counts of tokens by expert
void read_measured_run(std::string_view bytes);         // a run to ask questions about
void read_nccl_log(std::string_view bytes);             // NCCL_DEBUG=INFO
void read_nccl_tests(std::string_view bytes);           // the output of all_reduce_perf
void read_nccl_tests_json(std::string_view bytes);      // the file that all_reduce_perf -J writes
void read_nccl_graphs(std::string_view bytes);          // a profile of the graphs that NCCL dumped
void read_nccl_xml(std::string_view bytes);             // NCCL's dump of a topology or of graphs
void read_nvidia_smi_topology(std::string_view bytes);  // nvidia-smi topo -m
void read_order_file(std::string_view bytes);           // strategy.schedule: {file: ...}
void read_prices(std::string_view bytes);
void read_profile(std::string_view bytes);
void read_published(std::string_view bytes);       // rows of measured steps
void read_rank_run(std::string_view bytes);        // a rank's results
void read_report(std::string_view bytes);          // as the viewer opens it
void read_slurm_topology(std::string_view bytes);  // topology.conf
void read_snapshot(std::string_view bytes);        // a parameter server's states
void read_spec(std::string_view bytes);
void read_trace_summary(std::string_view bytes);  // a trace to sum up
void read_view(std::string_view bytes);           // a saved view

struct Reader {
  std::string_view name;
  void (*read)(std::string_view bytes);
};
std::span<const Reader> readers();

// Reads an input by `work`. An Error is no finding if its message is one printable line; another message, or another
// exception, is printed and ends the program.
void take(std::string_view bytes, void (*work)(std::string_view bytes));

}  // namespace orrery::fuzz
