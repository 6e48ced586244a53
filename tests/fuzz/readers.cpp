#include "tests/fuzz/fuzz.h"

namespace orrery::fuzz {

std::span<const Reader> readers() {
  static constexpr Reader kReaders[] = {{"archive", read_archive},
                                        {"chakra", read_chakra},
                                        {"chrome_trace", read_chrome_trace},
                                        {"cluster_facts", read_cluster_facts},
                                        {"forwarding_tables", read_forwarding_tables},
                                        {"hugging_face", read_hugging_face},
                                        {"ibnetdiscover", read_ibnetdiscover},
                                        {"kernel_rows", read_kernel_rows},
                                        {"kineto", read_kineto},
                                        {"launch", read_launch},
                                        {"lldp", read_lldp},
                                        {"loads", read_loads},
                                        {"measured_run", read_measured_run},
                                        {"nccl_log", read_nccl_log},
                                        {"nccl_tests", read_nccl_tests},
                                        {"nccl_tests_json", read_nccl_tests_json},
                                        {"nccl_graphs", read_nccl_graphs},
                                        {"nccl_xml", read_nccl_xml},
                                        {"nvidia_smi_topology", read_nvidia_smi_topology},
                                        {"order_file", read_order_file},
                                        {"prices", read_prices},
                                        {"profile", read_profile},
                                        {"published", read_published},
                                        {"rank_run", read_rank_run},
                                        {"report", read_report},
                                        {"slurm_topology", read_slurm_topology},
#ifdef ORRERY_FUZZ_EXEC
                                        {"snapshot", read_snapshot},
#endif
                                        {"spec", read_spec},
                                        {"trace_summary", read_trace_summary},
                                        {"view", read_view}};
  return kReaders;
}

}  // namespace orrery::fuzz
