#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

// A GPU without arithmetic: it defines the functions of the CUDA runtime, of cuBLASLt and of NCCL that the executor
// calls, and is linked in their place with the objects that nvcc has made, unchanged. Device memory cannot be touched
// by the host and holds nothing: copies to the host bring zeros. Streams and events have virtual time, host functions
// run late on a thread of their own, and every call is checked: handles, kinds and extents of copies, alignment, launch
// limits, memory, and whether two accesses to the same bytes, one of them a write, have an order between them. NCCL's
// ranks are threads of one process; a call waits until all members have made the matching one.
//
// A fault of the caller becomes a complaint, and the call fails where the real one would. These functions steer it.
namespace orrery::null_gpu {

inline constexpr char kName[] = "null GPU";
inline constexpr char kBus[] = "0000:0A:00.0";  // its PCI bus id, by which its sensors are found

// Complaints since the last call, each as "2x launch of ...: 2048 threads in a block".
std::vector<std::string> complaints();

// Things that have not been given back: "3 events". Nothing may be under way.
std::vector<std::string> left_behind();

// Number of calls since the last begin(), by function.
std::map<std::string, std::int64_t> calls();

// Begins anew: no counts, no planted failure, no memory of accesses. With a function's name, its call of that number
// (1: the next) will fail.
void begin(const std::string& failing = "", std::int64_t number = 0);
bool has_failed();  // whether the planted failure has come to pass

// Some calls of cudaStreamWaitEvent add an order that their stream did not have: calls() counts them under kOrders. The
// one of this number (1: the next) will add none, as if it had been left out; 0: each adds its order.
inline constexpr char kOrders[] = "orders added";
void leave_out_wait(std::int64_t number);
std::string left_out_wait();  // the wait that was left out last, by the last accesses of both streams before it

// The products since the last begin(), as "4096 x 4096 and 4096 x 512" (cuBLASLt's layouts of the operands), of which
// an operand had been read so shortly before that the L2 cache may still have held it.
std::set<std::string> products_of_cached_operands();

// Work takes so many times as long: the host then runs far ahead, and has seen the end of little when it enqueues.
void set_slowness(double factor);

// Seconds that a rank's NCCL call waits for the other members before it complains.
void set_patience(double seconds);

}  // namespace orrery::null_gpu
