#include "sim/report/critical_path.h"

#include <algorithm>
#include <utility>

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/topological_sort.hpp>

namespace orrery {
namespace {

using Node = std::uint32_t;
using Graph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                                 boost::no_property, Node, std::uint32_t>;

// A graph of tasks and launches that wait for each other. The nodes are tasks and their launches: the tasks of one
// transfer are one node, with the number of the transfer's first task; the launch of task t is the node (number of
// tasks + t). Edges lead from a node to the nodes that it waits for.
struct WaitGraph {
  std::vector<Picoseconds> start, end;  // start time and end time of each node (a task or a launch)
  Graph graph;
};

Node task_node(const Plan& plan, TaskId t) {
  const std::uint32_t match = plan.tasks[t].match;
  return match == kNone ? t : plan.members_of(match).front();
}

std::vector<std::pair<Node, Node>> edges_of(const Plan& plan, const Trace& trace) {
  std::vector<std::pair<Node, Node>> edges;
  edges.reserve(plan.dependencies.size() + 3 * plan.tasks.size());
  std::vector<TaskId> last(plan.classes.size() * kLanes, kNone);
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const Node node = task_node(plan, t);
    const Node launch = plan.task_count() + t;
    const Node waits = waits_on_host(plan, t) ? launch : node;
    for (const TaskId before : plan.dependencies_of(t)) edges.emplace_back(waits, task_node(plan, before));
    TaskId& previous = last[plan.tasks[t].lane];
    if (previous != kNone) edges.emplace_back(node, task_node(plan, previous));
    previous = t;
    // the task that delayed this one; if all kernels of a rank share one hardware queue, it may be any earlier kernel
    const TaskId cause = trace.spans[t].cause;
    if (cause != kNone) edges.emplace_back(node, task_node(plan, cause));
    edges.emplace_back(node, launch);
    if (t != plan.classes[plan.slot_of(t)].begin) edges.emplace_back(launch, launch - 1);
  }
  return edges;
}

WaitGraph wait_graph(const Plan& plan, const Trace& trace) {
  const TaskId count = plan.task_count();
  WaitGraph n;
  n.start.resize(2 * std::size_t{count});
  n.end.resize(2 * std::size_t{count});
  for (TaskId t = 0; t < count; ++t) {
    n.start[t] = trace.spans[t].matched;
    n.end[t] = trace.spans[t].ended;
    n.start[count + t] = launch_start(plan, trace, t);
    n.end[count + t] = trace.spans[t].issued;
  }
  const auto edges = edges_of(plan, trace);
  n.graph = Graph(boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(), 2 * count);
  return n;
}

}  // namespace

std::vector<TaskId> critical_path(const Plan& plan, const Trace& trace) {
  std::vector<TaskId> path;
  const TaskId count = plan.task_count();
  if (count == 0) return path;
  const WaitGraph n = wait_graph(plan, trace);
  // The node that delayed a node is the one that ended last among the nodes it waited for. If a task and a launch ended
  // at the same time, the task is preferred, since it says more to a reader.
  const auto ends_later = [&](Node a, Node b) { return n.end[a] != n.end[b] ? n.end[a] > n.end[b] : a < b; };
  Node node = 0;
  for (Node t = 1; t < count; ++t) node = ends_later(t, node) ? t : node;
  node = task_node(plan, node);
  for (Node before = node; before != kNone; node = before) {
    if (node < count) {
      const std::uint32_t match = plan.tasks[node].match;
      path.push_back(match == kNone ? node : last_to_enter(plan, trace, match));
    }
    before = kNone;
    const auto [from, to] = boost::adjacent_vertices(node, n.graph);
    for (auto b = from; b != to; ++b) {
      if (before == kNone || ends_later(*b, before)) before = *b;
    }
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<Picoseconds> slack(const Plan& plan, const Trace& trace) {
  const TaskId count = plan.task_count();
  const WaitGraph n = wait_graph(plan, trace);
  std::vector<Node> order;  // the graph's nodes (tasks, launches), each after all nodes that it waits for
  order.reserve(n.end.size());
  boost::topological_sort(n.graph, std::back_inserter(order));
  std::vector<Picoseconds> latest_end(n.end.size(), trace.step_time);
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    const Picoseconds latest_start = latest_end[*node] - (n.end[*node] - n.start[*node]);
    const auto [from, to] = boost::adjacent_vertices(*node, n.graph);
    for (auto before = from; before != to; ++before) {
      latest_end[*before] = std::min(latest_end[*before], latest_start);
    }
  }
  std::vector<Picoseconds> result(count);
  for (TaskId t = 0; t < count; ++t) {
    const Node node = task_node(plan, t);
    result[t] = latest_end[node] - n.end[node];
  }
  return result;
}

}  // namespace orrery
