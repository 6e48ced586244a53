// The part of class Space (the search space of parallel strategies) that reads which values the spec allows for each
// key.
#include <algorithm>
#include <charconv>
#include <functional>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/load/combinations.h"
#include "models/load/reader.h"
#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"
#include "sim/search/space.h"

namespace orrery {
namespace {

// Reads the values that the section `search:` of a spec file lists for a key. Throws Error with the line, the key and
// what is wrong.
class Values {
 public:
  explicit Values(const SearchRange& range) : range_(range) {}

  template <class T>
  void restrict_to(Choices<T>& axis) const {
    axis = {false, {}};
    for (const std::string& text : range_.values) {
      T value{};
      read(text, value);
      if (!axis.admits(value)) axis.values.push_back(value);
    }
  }
  // Reads the values that the spec lists for a key whose values are names (of schedules, for example) and limits the
  // search to them. Throws Error for a name that the function `check` refuses.
  template <class Check>
  void restrict_to(Choices<std::string>& axis, Check check) const {
    restrict_to(axis);
    for (const std::string& word : axis.values) {
      try {
        check(word);
      } catch (const Error& e) {
        fail(e.what());
      }
    }
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    // The text of an error may begin with this prefix, "FILE:LINE: ", already; then the prefix is not added a second
    // time.
    const std::string from = range_.from + ": ";
    throw Error(
        fmt::format("{}search.{}: {}", from, range_.key, what.substr(what.starts_with(from) ? from.size() : 0)));
  }
  void read(const std::string& text, std::int64_t& value) const {
    const bool all = range_.key.ends_with("_layers") && text == "null";
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (!all && (error != std::errc() || end != text.data() + text.size() || value < 1))
      fail(fmt::format("'{}' is not a whole number of at least 1", text));
    if (all) value = -1;
  }
  void read(const std::string& text, bool& value) const {
    if (text != "true" && text != "false") fail(fmt::format("'{}' is neither true nor false", text));
    value = text == "true";
  }
  static void read(const std::string& text, std::string& value) { value = text; }

  const SearchRange& range_;
};

void check_context_kind(std::string_view word) {
  if (std::find(std::begin(kContextKinds), std::end(kContextKinds), word) == std::end(kContextKinds))
    throw Error(unknown_name("context_kind", word, kContextKinds));
}

void check_offload(std::string_view word) {
  const std::vector<std::string_view>& names = offload_names();
  if (std::find(names.begin(), names.end(), word) == names.end()) throw Error(unknown_name("offload", word, names));
}

void check_activations(std::string_view word) {
  if (std::find(std::begin(kActivationPlaces), std::end(kActivationPlaces), word) == std::end(kActivationPlaces))
    throw Error(unknown_name("place", word, kActivationPlaces));
}

void check_rank_order(const std::string& order) {
  Spec spec;
  spec.strategy.rank_order = order;
  if (const Broken broken = rank_order_rules(spec); !broken.what.empty()) throw Error(broken.what);
}

}  // namespace

// Throws Error if a value that the spec lists for the search is one that the search supports in no strategy.
static void refuse_value(const SearchRange& range, const Spec& with_value) {
  if (const Pair* limit = first_limit(with_value, Limit::search); limit != nullptr)
    throw Error(fmt::format("{}: {}", range.from, refusal(with_value, *limit)));
}

static void check_sharding(const SearchRange& range, const std::string& name) {
  Spec spec;
  spec.strategy.sharding = find_sharding(name);
  refuse_value(range, spec);
}

static void check_schedule(const SearchRange& range, const std::string& name) {
  Spec spec;
  spec.strategy.schedule = name;
  if (name != "file" && find_schedule(name).plans_stages)
    throw Error(
        fmt::format("{}: schedule: {} cuts its stages unlike the others; search it by itself, as "
                    "strategy.schedule",
                    range.from, name));
  refuse_value(range, spec);
}

// Whether the search has lower bounds for a schedule: a step must end before the next one begins, activations must stay
// on their rank, embedding and output must be on the first and the last stage, and the pipeline may run at most two
// copies of the model. Other schedules are refused by the table of refused combinations (Limit::search).
bool has_bounds(const ScheduleRow& row) {
  return row.updates == Updates::flush && row.moves == nullptr && row.vocabulary_barriers == 0 &&
         model_copies(row.name) <= 2;
}

std::vector<std::string_view> Space::left_out() const {
  std::vector<std::string_view> names;
  for (const ScheduleRow& row : schedule_rows()) {
    if (schedule_.open && (row.searched == Searched::listed || !has_bounds(row))) names.push_back(row.name);
  }
  for (const ShardingRow& row : sharding_rows()) {
    if (sharding_.open && (row.master || row.servers)) names.push_back(row.name);
  }
  if (activations_unlisted_) names.emplace_back("offload.activations");
  if (host_unlisted_) names.emplace_back("offload");
  if (disks_unlisted_ && !host_unlisted_) names.emplace_back("offload to disks");
  return names;
}

bool Space::splits() const {
  const std::vector<ScheduleRow>& rows = schedule_rows();
  return std::any_of(rows.begin(), rows.end(), [&](const ScheduleRow& row) {
    return row.splits && has_bounds(row) && schedule_.admits(std::string(row.name));
  });
}

// Fixes a key of the strategy to the value that the spec gives it, so that the search does not vary the key.
void Space::take_given(const Origin& origin) {
  constexpr std::string_view section = "strategy.";
  if (!origin.key.starts_with(section) || !is_given(origin)) return;
  const std::string key = origin.key.substr(section.size());
  // The key up to its first dot: "context_kind" for "context_kind.ring", which comes from a value that is a map,
  // context_kind: {ring: 2, ulysses: 4}.
  const std::string whole = key.substr(0, key.find('.'));
  batch_given_ = batch_given_ || key == "global_batch";
  bucket_given_ = bucket_given_ || key == "bucket_MiB";
  const auto fixed = [&](auto& axis, auto value) { axis = {false, {value}}; };
  const Strategy& s = base_.strategy;
  if (key == "tensor") fixed(tensor_, s.tensor);
  if (key == "context") fixed(context_, s.context);
  if (key == "pipeline") fixed(pipeline_, s.pipeline);
  if (key == "data") fixed(data_, s.data);
  if (key == "expert") fixed(expert_, s.expert);
  if (key == "expert_tensor") fixed(expert_tensor_, s.expert_tensor);
  if (key == "virtual_stages") fixed(virtual_stages_, s.virtual_stages);
  if (key == "micro_batch") fixed(micro_batch_, s.micro_batch);
  if (key == "shard_group") fixed(shard_group_, s.shard_group);
  if (key == "recompute_layers") fixed(recompute_layers_, s.recompute.layers.value_or(-1));
  if (whole == "schedule") fixed(schedule_, s.schedule);
  if (key == "sharding") fixed(sharding_, std::string(name_of(s.sharding)));
  if (key.starts_with("offload.")) take_offload(key.substr(key.find('.') + 1));
  if (key == "recompute") fixed(recompute_, origin.value);
  if (whole == "context_kind") fixed(context_kind_, s.context_kind);
  if (whole == "context_kind" && s.context_kind == "mixed" && context_.open)
    fixed(context_, s.context_ring * s.context_ulysses);
  if (key == "rank_order") fixed(rank_order_, s.rank_order);
  if (key == "sequence_parallel") fixed(sequence_parallel_, s.sequence_parallel);
  if (key == "overlap.gradient_reduce") fixed(gradient_reduce_, s.overlap.gradient_reduce);
  if (key == "overlap.parameter_gather") fixed(parameter_gather_, s.overlap.parameter_gather);
  if (key == "overlap.tensor") fixed(overlap_tensor_, s.overlap.tensor);
  if (key == "overlap.pipeline") fixed(overlap_pipeline_, s.overlap.pipeline);
  if (key == "overlap.expert") fixed(overlap_expert_, s.overlap.expert);
}

void Space::take_range(const SearchRange& range) {
  const Values values(range);
  const auto names = [&](auto& axis, auto check) { return [&, check] { values.restrict_to(axis, check); }; };
  const auto plain = [&](auto& axis) { return [&] { values.restrict_to(axis); }; };
  const std::vector<std::pair<std::string_view, std::function<void()>>> axes = {
      {"tensor", plain(tensor_)},
      {"context", plain(context_)},
      {"pipeline", plain(pipeline_)},
      {"data", plain(data_)},
      {"expert", plain(expert_)},
      {"expert_tensor", plain(expert_tensor_)},
      {"virtual_stages", plain(virtual_stages_)},
      {"micro_batch", plain(micro_batch_)},
      {"shard_group", plain(shard_group_)},
      {"recompute_layers", plain(recompute_layers_)},
      {"schedule", names(schedule_, [&](const std::string& name) { check_schedule(range, name); })},
      {"sharding", names(sharding_, [&](const std::string& name) { check_sharding(range, name); })},
      {"offload", names(offload_, check_offload)},
      {"offload_activations", names(activations_, check_activations)},
      {"offload_activation_layers", plain(activation_layers_)},
      {"recompute", names(recompute_, [&](const std::string& parts) { recompute_of(parts, base_.software); })},
      {"context_kind", names(context_kind_, check_context_kind)},
      {"rank_order", names(rank_order_, check_rank_order)},
      {"sequence_parallel", plain(sequence_parallel_)},
      {"overlap_gradient_reduce", plain(gradient_reduce_)},
      {"overlap_parameter_gather", plain(parameter_gather_)},
      {"overlap_tensor", plain(overlap_tensor_)},
      {"overlap_pipeline", plain(overlap_pipeline_)},
      {"overlap_expert", plain(overlap_expert_)},
  };
  std::vector<std::string_view> known;
  for (const auto& [name, take] : axes) {
    known.push_back(name);
    if (name != range.key) continue;
    take();
    return;
  }
  throw Error(fmt::format("{}: search: {}", range.from, unknown_name("axis", range.key, known)));
}

}  // namespace orrery
