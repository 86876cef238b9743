// The layout string's grammar, from Megatron-LM main d98e8a64dd, core/transformer/pipeline_parallel_layer_layout.py:
//   commas mean nothing; (xyz)*n repeats xyz, brackets do not nest; then x*n repeats one character, '|' included;
//   '|' ends a stage; E = embedding, t = decoder layer, m = prediction layer (MTP), L = output and loss.
// Without a string, split_layers.cpp says how many layers each stage has.
#include "planner/pipeline_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace ebb {

namespace {

// Far above any real model, and small enough that a hostile repetition cannot exhaust memory.
constexpr std::size_t kLongestLayout = 100'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Whether "*digits" stands at `at`.
bool repeats(std::string_view text, std::size_t at) {
  return at + 1 < text.size() && text[at] == '*' && is_digit(text[at + 1]);
}

/// The number behind the star at `at`, which moves behind it. Precondition: repeats(text, at).
std::size_t repetition(std::string_view text, std::size_t& at, const Place& place) {
  std::size_t times = 0;
  for (++at; at < text.size() && is_digit(text[at]); ++at) {
    times = times * 10 + static_cast<std::size_t>(text[at] - '0');
    if (times > kLongestLayout) throw InputError(place, "the pipeline layout repeats something too often");
  }
  return times;
}

void append(std::string& out, std::string_view piece, std::size_t times, const Place& place) {
  if (out.size() + piece.size() * times > kLongestLayout) {
    throw InputError(place, fmt::format("the pipeline layout has more than {} entries", kLongestLayout));
  }
  for (std::size_t i = 0; i < times; ++i) out += piece;
}

/// Megatron's first pass: (xyz)*n. Brackets that do not match stay and are refused as entries later.
std::string unroll_groups(std::string_view text, const Place& place) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t close = text[at] == '(' ? text.find(')', at) : std::string_view::npos;
    if (close != std::string_view::npos && close > at + 1 && repeats(text, close + 1)) {
      const std::string_view body = text.substr(at + 1, close - at - 1);
      at = close + 1;
      append(out, body, repetition(text, at, place), place);
    } else {
      append(out, text.substr(at++, 1), 1, place);
    }
  }
  return out;
}

/// Its second pass: x*n.
std::string unroll_characters(std::string_view text, const Place& place) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view character = text.substr(at++, 1);
    append(out, character, repeats(text, at) ? repetition(text, at, place) : 1, place);
  }
  return out;
}

std::string readable(char c) {
  return c >= ' ' && c <= '~' ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
}

void add_entry(ModelChunk& stage, char entry, std::int64_t& next_layer, const Place& place) {
  switch (entry) {
    case 'E':
      stage.embedding = true;
      return;
    case 'L':
      stage.output = true;
      return;
    case 't':
      stage.decoder_layers.push_back(next_layer++);
      return;
    case 'm':
      ++stage.mtp_layers;
      return;
    default:
      throw InputError(place, fmt::format("unexpected '{}' in the pipeline layout", readable(entry)),
                       "use E (embedding), t (decoder layer), m (prediction layer), L (output and loss), '|' between "
                       "stages, x*n and (xy)*n to repeat");
  }
}

/// E first, L last, each once, and no decoder layer behind a prediction layer.
void check_order(std::string_view entries, const Place& place) {
  std::string flat(entries);
  flat.erase(std::remove(flat.begin(), flat.end(), '|'), flat.end());
  const auto once = [&flat](char entry) { return std::count(flat.begin(), flat.end(), entry) == 1; };
  if (!once('E') || flat.front() != 'E') {
    throw InputError(place, "the pipeline layout must start with its only E (embedding)");
  }
  if (!once('L') || flat.back() != 'L') {
    throw InputError(place, "the pipeline layout must end with its only L (output and loss)");
  }
  const std::size_t prediction = flat.find('m');
  if (prediction != std::string::npos && flat.find('t', prediction) != std::string::npos) {
    throw InputError(place, "the pipeline layout has a decoder layer (t) behind a prediction layer (m)");
  }
}

/// Checks the layout against the job's sizes.
void check_fit(const Job& job, const std::vector<ModelChunk>& stages, const Place& place) {
  const Parallel& parallel = job.parallel;
  const auto count = static_cast<std::int64_t>(stages.size());
  if (count != parallel.pipeline * parallel.virtual_pipeline) {
    const bool divides = count % parallel.pipeline == 0;
    throw InputError(place,
                     fmt::format("the pipeline layout has {} stages, pipeline x virtual_pipeline is {} x {}", count,
                                 parallel.pipeline, parallel.virtual_pipeline),
                     divides ? fmt::format("set virtual_pipeline to {}", count / parallel.pipeline)
                             : fmt::format("the number of stages must be a multiple of {}", parallel.pipeline));
  }
  std::int64_t layers = 0;
  std::int64_t predictions = 0;
  for (const ModelChunk& stage : stages) {
    layers += static_cast<std::int64_t>(stage.decoder_layers.size());
    predictions += stage.mtp_layers;
  }
  if (layers != job.model.layers || predictions != job.model.mtp_layers()) {
    throw InputError(
        place, fmt::format("the pipeline layout has {} decoder and {} prediction layers, the model {} and {}", layers,
                           predictions, job.model.layers, job.model.mtp_layers()));
  }
  for (std::int64_t s = 0; s < count; ++s) {
    const std::int64_t here = stages[static_cast<std::size_t>(s)].mtp_layers;
    if (here == 0) continue;
    if (here != predictions) {
      throw InputError(place, "one stage of the pipeline layout must hold all prediction layers (m)");
    }
    if (s / parallel.pipeline != parallel.virtual_pipeline - 1) {
      throw InputError(place, "prediction layers (m) must be in a pipeline rank's last virtual stage");
    }
  }
}

}  // namespace

std::vector<ModelChunk> parse_pipeline_layout(std::string_view text, const Place& place) {
  std::string plain(text);
  plain.erase(std::remove(plain.begin(), plain.end(), ','), plain.end());
  if (plain.empty()) throw InputError(place, "the pipeline layout is empty");
  const std::string entries = unroll_characters(unroll_groups(plain, place), place);
  std::vector<ModelChunk> stages(1);
  std::int64_t next_layer = 0;
  for (const char entry : entries) {
    if (entry == '|') {
      stages.emplace_back();
    } else {
      add_entry(stages.back(), entry, next_layer, place);
    }
  }
  check_order(entries, place);
  return stages;
}

std::vector<ModelChunk> model_chunks(const Job& job, std::int64_t pipeline_rank) {
  const Parallel& parallel = job.parallel;
  EBB_ASSERT(pipeline_rank >= 0 && pipeline_rank < parallel.pipeline);
  if (parallel.pipeline_layout.empty()) return split_layers(job, pipeline_rank);
  std::vector<ModelChunk> chunks;
  const Place place = job.place_of("parallel.pipeline_layout");
  std::vector<ModelChunk> stages = parse_pipeline_layout(parallel.pipeline_layout, place);
  check_fit(job, stages, place);
  for (std::int64_t c = 0; c < parallel.virtual_pipeline; ++c) {
    chunks.push_back(std::move(stages[static_cast<std::size_t>(c * parallel.pipeline + pipeline_rank)]));
  }
  return chunks;
}

}  // namespace ebb
