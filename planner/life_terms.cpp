#include "planner/life_terms.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/quantity_text.hpp"
#include "planner/activations.hpp"
#include "planner/checkpoint_tensors.hpp"
#include "planner/layer_activations.hpp"
#include "planner/tidal_pieces.hpp"
#include "planner/weight_bytes.hpp"

namespace ebb {

namespace {

class Origin {
 public:
  Origin(const RankModel& rank, const Candidate& candidate, Phase phase)
      : rank_(rank), job_(*rank.job), candidate_(candidate), phase_(phase) {}

  std::string of(MemoryTerm term, Bytes bytes) const;

 private:
  std::string parameters() const;
  std::string of_owned(const std::string& sizes, std::int64_t size, Bytes bytes) const;
  std::string weight_copies() const;
  std::string masters(Bytes bytes) const;
  std::string moments(Bytes bytes) const;
  std::string tidal_moments(Bytes bytes) const;
  std::string hidden_states(Bytes bytes) const;
  std::string saved(const char* what) const;
  std::string checkpoint() const;

  const RankModel& rank_;
  const Job& job_;
  const Candidate& candidate_;
  Phase phase_;
};

std::string Origin::parameters() const {
  Numel plain{0};
  Numel quantized{0};
  for (const BufferLayout& buffer : rank_.stage->buffers) (buffer.quantized ? quantized : plain) += buffer.numel;
  std::string text;
  if (plain.value > 0) text = fmt::format("{} B x {}", size_of(job_.precision.params), format_numel(plain));
  if (quantized.value > 0) text += fmt::format("{}1 B x {}", text.empty() ? "" : " + ", format_numel(quantized));
  text += " padded elements of the buffers";
  return phase_ == Phase::init ? text + ", and the model's own until they are in them" : text;
}

/// Tensors are rounded, which is small beside a shard.
std::string Origin::of_owned(const std::string& sizes, std::int64_t size, Bytes bytes) const {
  if (size <= 0) return "";
  const Bytes all = bytes_of(rank_.owned, size);
  if (bytes >= all)
    return fmt::format("{} B x {} owned elements in {} shards, each rounded by the allocator", sizes,
                       format_numel(rank_.owned), rank_.shards.size());
  return fmt::format("{} B x {} of {} owned elements: what is on the device then", sizes,
                     format_numel({bytes.value / size}), format_numel(rank_.owned));
}

std::string Origin::weight_copies() const {
  std::string text = "what FP8 and FP4 recipes keep beside the parameter buffers";
  if (ebb::weight_copies(job_, *rank_.stage).columns.empty()) return text;
  if (eager_columnwise(job_)) return text + "; column-wise copies stay (eager)";
  return text +
         "; column-wise copies come in forward and go with the step (lazy: pull request 6544 without CUDA graphs; main "
         "and dev keep them, precision.fp8.columnwise: eager)";
}

std::string Origin::masters(Bytes bytes) const {
  const std::int64_t size = job_.precision.master_bytes();
  return of_owned(std::to_string(size), size, bytes);
}

/// A piece has all of its elements' state in one buffer; of what is kept, masters are a term of their own.
std::string Origin::tidal_moments(Bytes bytes) const {
  const Precision& precision = job_.precision;
  const std::shared_ptr<const TidalPieces> tide = tidal_pieces(rank_, candidate_);
  const Bytes kept = bytes_of(tide->kept.numel(), precision.moment_bytes());
  const std::string moments = fmt::format("({} + {}) B", size_of(precision.exp_avg), size_of(precision.exp_avg_sq));
  if (bytes < kept || (kept.value > 0 && bytes - kept < tide->bytes))
    return fmt::format("{} x {} kept elements", moments, format_numel(tide->kept.numel()));
  std::string text =
      fmt::format("{} pieces of {} B x {} elements, master weights among them",
                  (bytes - kept).value / tide->bytes.value, precision.state_bytes(), format_numel(tide->numel));
  if (kept.value > 0) text += fmt::format("; {} x {} kept elements", moments, format_numel(tide->kept.numel()));
  return text;
}

std::string Origin::moments(Bytes bytes) const {
  if (candidate_.policy == Policy::tidal) return tidal_moments(bytes);
  if (candidate_.policy == Policy::pipelined)
    return fmt::format("{} slots of {} B x {} elements", candidate_.slots, job_.precision.state_bytes(),
                       format_numel(candidate_.chunk_numel));
  const Precision& precision = job_.precision;
  return of_owned(fmt::format("({} + {})", size_of(precision.exp_avg), size_of(precision.exp_avg_sq)),
                  precision.moment_bytes(), bytes);
}

std::string Origin::hidden_states(Bytes bytes) const {
  const Bytes one = hidden_state_bytes(job_);
  const std::int64_t element = size_of(job_.precision.params);
  return fmt::format("{:.1f} hidden states of {} ({} B x {} tokens x {})",
                     static_cast<double>(bytes.value) / static_cast<double>(one.value), format_bytes(one), element,
                     one.value / element / job_.model.hidden, job_.model.hidden);
}

std::string Origin::saved(const char* what) const {
  std::size_t layers = 0;
  for (const ModelChunk& chunk : rank_.stage->chunks) layers += chunk.decoder_layers.size();
  return fmt::format("{} of the micro-batches in flight, {} layers on this rank, micro-batch {} x {} tokens", what,
                     layers, job_.batch.micro, job_.batch.sequence);
}

std::string Origin::checkpoint() const {
  if (phase_ == Phase::save && save_gather(job_, *rank_.stage).pieces > 0)
    return "the largest bucket in fp32, gathered from all ranks of the sharding group";
  if (phase_ == Phase::save) return "4 B a state that is not stored as fp32, un-scaled for the state dictionary";
  std::string text;
  if (!reload_tensors(job_).empty())
    text = fmt::format("state that the optimizer's loader builds beside what is there, {} tensors a shard",
                       reload_tensors(job_).size());
  const bool targets = std::any_of(rank_.stage->parameters.begin(), rank_.stage->parameters.end(),
                                   [](const Parameter& parameter) { return parameter.quantized; });
  if (targets) text += fmt::format("{}2 B an FP8 weight to load into", text.empty() ? "" : "; ");
  return text;
}

std::string Origin::of(MemoryTerm term, Bytes bytes) const {
  const Precision& precision = job_.precision;
  switch (term) {
    case MemoryTerm::parameters:
      return parameters();
    case MemoryTerm::weight_copies:
      return weight_copies();
    case MemoryTerm::gradients:
      return fmt::format("{} B x {} padded elements of the buffers", size_of(precision.grads),
                         format_numel(rank_.stage->padded()));
    case MemoryTerm::gradient_copies:
      return of_owned("4", 4, bytes);
    case MemoryTerm::masters:
      return masters(bytes);
    case MemoryTerm::moments:
      return moments(bytes);
    case MemoryTerm::workspaces:
      return "matrix-library workspaces of 32 MiB, stand-ins of fused weight gradients, gather buffers";
    case MemoryTerm::hidden_states:
      return hidden_states(bytes);
    case MemoryTerm::attention:
      return saved("attention");
    case MemoryTerm::feed_forward:
      return saved("feed-forward");
    case MemoryTerm::experts:
      return saved("routed tokens and experts");
    case MemoryTerm::loss:
      return fmt::format("logits (2 B) and softmax (4 B) of {} tokens x {} words", rank_tokens(job_),
                         padded_vocabulary(job_) / job_.parallel.tensor);
    case MemoryTerm::prediction:
      return saved("multi-token prediction");
    case MemoryTerm::data:
      return "tokens, labels, masks, rotary tables";
    case MemoryTerm::backward:
      return "gradients of activations, one layer at a time";
    case MemoryTerm::optimizer_scratch:
      return "temporaries of the optimizer: casts, roots, un-scaled moments";
    case MemoryTerm::checkpoint:
      return checkpoint();
    case MemoryTerm::remainder:
      return "what a run of this job held beyond the other terms (job: measured)";
    case MemoryTerm::other:
      return "tensors without a name";
  }
  return "";
}

}  // namespace

std::vector<LifeTerm> life_terms(const RankModel& rank, const Candidate& candidate, Phase phase,
                                 const std::array<Bytes, kMemoryTerms>& at_peak) {
  const Origin origin(rank, candidate, phase);
  std::vector<LifeTerm> terms;
  for (std::size_t i = 0; i < at_peak.size(); ++i) {
    const auto term = static_cast<MemoryTerm>(i);
    if (at_peak[i].value > 0) terms.push_back({term, at_peak[i], origin.of(term, at_peak[i])});
  }
  std::stable_sort(terms.begin(), terms.end(), [](const LifeTerm& a, const LifeTerm& b) { return a.bytes > b.bytes; });
  return terms;
}

}  // namespace ebb
