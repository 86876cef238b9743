#include "replay/life_reference.hpp"

#include <fmt/format.h>

#include <chrono>
#include <exception>

#include "models/errors.hpp"
#include "replay/life_checkpoint.hpp"
#include "replay/life_sequence.hpp"

namespace ebb::replay {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

[[noreturn]] void out_of_place(const char* problem, const char* cure) { throw InputError({}, problem, cure); }

/// The steady step's programs of all ranks stand for those of other parts, unless one takes far more.
void check_sizes(std::span<const LifeRank> ranks) {
  std::vector<Program> steps;
  for (const LifeRank& rank : ranks) {
    steps.push_back(program_of(rank, LifePart::step));
    for (const std::optional<Program>& program : rank.programs)
      if (program) check_reference_size(std::span(&*program, 1));
  }
  check_reference_size(steps);
}

/// `ranks`, which must be all of the job.
std::span<const LifeRank> whole_job(std::span<const LifeRank> ranks) {
  std::vector<std::int64_t> present;
  for (const LifeRank& rank : ranks) present.push_back(program_of(rank, LifePart::init).plan->rank);
  check_all_ranks(present);
  return ranks;
}

}  // namespace

ReferenceLife::ReferenceLife(std::span<const LifeRank> ranks, const LifeScript& script,
                             std::optional<StreamKind> held_back, std::size_t most_on)
    : ranks_(whole_job(ranks)),
      options_(script.training),
      keep_(script.keep),
      beside_save_(script.beside_save),
      run_(ranks, script.training, held_back, most_on),
      place_(first_place(script.training)),
      numbers_(ranks.size()) {
  set_place(place_);
}

void ReferenceLife::set_place(const TrainingPlace& place) {
  place_ = place;
  for (std::size_t r = 0; r < run_.size(); ++r) run_.rank(r).set_place(place);
}

LifePart ReferenceLife::part(LifePart part, std::optional<LifePart> skip) {
  const LifePart became = run_.part(part, skip);
  for (std::size_t r = 0; r < run_.size(); ++r) numbers_[r].peaks.push_back(run_.rank(r).end_part());
  return became;
}

void ReferenceLife::on(const LifeEvent& event) {
  using enum LifeEvent::Kind;
  if (event.kind == init) {
    if (stage_ != Stage::nothing) out_of_place("init comes once, at the beginning", "write another script");
    part(LifePart::init);
    stage_ = Stage::masters;
    return;
  }
  if (stage_ == Stage::nothing) out_of_place("a life begins with init", "begin the script with it");
  if (event.kind == save) return this->save(event);
  if (event.kind == steps) {
    for (int i = 0; i < event.steps; ++i) step();
    return;
  }
  this->load(event);
}

void ReferenceLife::step() {
  const bool first = stage_ == Stage::masters;
  const LifePart skip = first ? LifePart::first_skip : LifePart::skip;
  const bool skipped = part(first ? LifePart::first_step : LifePart::step, skip) == skip;
  std::uint64_t digest = 0;
  for (std::size_t r = 0; r < run_.size(); ++r) {
    StepNumbers numbers = run_.rank(r).numbers_of_step();
    numbers.skipped = skipped;
    digest += numbers.digest;
    numbers_[r].steps.push_back(numbers);
  }
  if (!skipped) stage_ = Stage::all;
  set_place(after_step(options_, place_, skipped, digest));
  if (skipped) return;
  if (const auto save = postponed_.due()) {
    write(*save);
    postponed_.made(*save, place_.steps);
  }
}

/// The whole checkpoint is looked at before any byte of state changes.
void ReferenceLife::load(const LifeEvent& event) {
  const bool params = event.kind == LifeEvent::Kind::load_params;
  if (params && stage_ == Stage::all)
    out_of_place("parameters alone are loaded before the first step", "load all state, or begin a life with them");
  const LifePart what = params ? LifePart::load_params : stage_ == Stage::all ? LifePart::reload : LifePart::load;
  const auto start = std::chrono::steady_clock::now();
  const checkpoint::Reader reader(event.directory);
  for (const LifeRank& rank : ranks_) require_for(reader, program_of(rank, what));
  reader.require_none_left(parameters_taken(reader, ranks_));
  if (!params) require_origin(reader, options_);
  const double looked = seconds_since(start);
  std::vector<CheckpointFigures> figures(ranks_.size());
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    CheckpointFigures& figure = figures[r];
    figure = {.saved = false, .directory = reader.path(), .storage_seconds = looked};
    run_.rank(r).checkpoint.fetch = [&reader, &figure, &rank = run_.rank(r)](const CheckpointPiece& piece,
                                                                             std::byte* data) {
      const auto begin = std::chrono::steady_clock::now();
      fetch_piece(reader, rank.plan(), piece, data);
      figure.storage_seconds += seconds_since(begin);
      figure.bytes += bytes_of(piece.numel, size_of(piece.type));
    };
  }
  part(what);
  postponed_ = {};
  if (!params) {
    stage_ = Stage::all;
    set_place(reader.description().place);
  }
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    run_.rank(r).checkpoint = {};
    figures[r].seconds = seconds_since(start);
    numbers_[r].checkpoints.push_back(figures[r]);
  }
}

void ReferenceLife::save(const LifeEvent& event) {
  if (stage_ != Stage::all && place_.steps == 0)
    out_of_place("there is no state to save before the first step", "take a step first");
  if (stage_ != Stage::all) return postponed_.put_off(event);
  if (!postponed_.was_made(event, place_.steps)) write(event);
}

void ReferenceLife::write(const LifeEvent& save) {
  const std::string& directory = save.directory;
  checkpoint::require_newest(directory, place_.steps);
  if (save.measured) beside_save_();
  const auto start = std::chrono::steady_clock::now();
  const auto ranks = static_cast<std::int64_t>(ranks_.size());
  std::vector<SavedPieces> pieces;
  std::vector<checkpoint::RankWriter> writers;
  std::vector<CheckpointFigures> figures(ranks_.size());
  for (const LifeRank& rank : ranks_) {
    const Program& program = program_of(rank, LifePart::save);
    pieces.emplace_back(program);
    writers.emplace_back(directory, describe_checkpoint(*program.plan, ranks, place_, options_), program.plan->rank,
                         checkpoint_parameters(*program.plan), pieces.back().pieces());
  }
  // What fails on the way to the disk ends the save, not the run: the part goes on to its end without writing.
  std::exception_ptr failed;
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    run_.rank(r).checkpoint.store = [&, r](const CheckpointPiece& piece, const std::byte* data) {
      if (failed) return;
      const auto begin = std::chrono::steady_clock::now();
      try {
        writers[r].write(pieces[r].index_of(piece), piece.first, piece.numel, data);
      } catch (...) {
        failed = std::current_exception();
      }
      figures[r].storage_seconds += seconds_since(begin);
    };
  part(LifePart::save);
  if (failed) std::rethrow_exception(failed);
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    run_.rank(r).checkpoint = {};
    const auto begin = std::chrono::steady_clock::now();
    figures[r].bytes = writers[r].finish().bytes;
    figures[r].storage_seconds += seconds_since(begin);
  }
  const Plan& plan = *program_of(ranks_.front(), LifePart::save).plan;
  const std::string path = checkpoint::commit(directory, describe_checkpoint(plan, ranks, place_, options_), keep_);
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    figures[r].directory = path;
    figures[r].seconds = seconds_since(start);
    numbers_[r].checkpoints.push_back(figures[r]);
  }
  if (save.measured) beside_save_();
}

std::vector<LifeNumbers> ReferenceLife::finish() {
  for (std::size_t r = 0; r < run_.size(); ++r) {
    const ReferenceRank::FinalDigests digests = run_.rank(r).final_digests();
    numbers_[r].final_state = digests.state;
    numbers_[r].parameters = digests.parameters;
    numbers_[r].place = place_;
    numbers_[r].strays = run_.rank(r).strays();
  }
  return numbers_;
}

std::vector<LifeNumbers> reference_life(std::span<const LifeRank> ranks, const LifeScript& script,
                                        std::optional<StreamKind> held_back, std::size_t most_on) {
  check_sizes(ranks);
  ReferenceLife life(ranks, script, held_back, most_on);
  for (const LifeEvent& event : script.events) life.on(event);
  return life.finish();
}

}  // namespace ebb::replay
