#include "replay/rank_life.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <utility>

#include "kernels/elementwise.hpp"
#include "models/errors.hpp"
#include "replay/checkpoint/directory.hpp"
#include "replay/life_checkpoint.hpp"
#include "replay/postponed_save.hpp"
#include "replay/ready_part.hpp"
#include "replay/state_init.hpp"
#include "replay/step_walk.hpp"

namespace ebb::replay {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

class RankLife {
 public:
  RankLife(const LifeRank& rank, std::size_t index, const RankPlace& place, LifeShared& shared)
      : shared_(shared),
        options_(shared.options),
        index_(index),
        programs_(programs_of(rank)),
        parts_(ready_parts(programs_)),
        store_(host_store(programs_, place.device)),
        memory_(programs_),
        instruments_(needs_of(parts_, options_)),
        walk_(*programs_[0], options_, parts_[0]->issue, memory_),
        pool_(cpus_of(parts_, place)),
        place_(first_place(options_.training)) {
    walk_.poison_releases();
    const StandInSpace space{memory_.at(programs_[0]->params), memory_.at(programs_[0]->grads)};
    for (const auto& part : parts_) {
      if (gemm_size(options_, part->actions) > 0)
        part->stand_ins = StandIns(part->program, part->actions, space, instruments_, walk_.compute());
    }
    if (options_.poison) poison_initial();
    init_parameters(*programs_[0], memory_, options_.training.seed, walk_.compute());
  }

  RankLifeRecord run() {
    shared_.meet();
    comms_.emplace(programs_, shared_.ids, shared_.comms);
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      ReadyPart& part = *parts_[p];
      part.issuer.emplace(IssuerParts{part.program, options_, part.actions, memory_, store_, instruments_,
                                      part.stand_ins, *comms_, pool_, p, &checkpoint_});
    }
    for (const LifeEvent& event : shared_.script.events) on(event);
    conclude();
    shared_.meet();  // nobody takes communicators down while others still use them
    return std::move(record_);
  }

 private:
  /// What of the state there is.
  enum class Stage { nothing, masters, all };

  const Plan& plan() const { return *programs_[current_]->plan; }
  ReadyPart& now() { return *parts_[current_]; }

  void poison_initial() {
    for (std::uint32_t b = 0; b < plan().buffers.size(); ++b) {
      const Bytes bytes = plan().buffers[b].bytes;
      if (memory_.at({b}) == nullptr || bytes.value == 0) continue;
      check(cudaMemsetAsync(memory_.at({b}), kernels::kPoison, static_cast<std::size_t>(bytes.value),
                            static_cast<cudaStream_t>(walk_.compute())),
            "cudaMemsetAsync");
    }
  }

  void on(const LifeEvent& event) {
    if (event.kind == LifeEvent::Kind::init && stage_ != Stage::nothing)
      throw InputError({}, "init comes once, at the beginning", "write another script");
    if (event.kind != LifeEvent::Kind::init && stage_ == Stage::nothing)
      throw InputError({}, "a life begins with init", "begin the script with it");
    switch (event.kind) {
      case LifeEvent::Kind::init:
        run_part(LifePart::init);
        stage_ = Stage::masters;
        return;
      case LifeEvent::Kind::steps:
        for (int i = 0; i < event.steps; ++i) step();
        return;
      case LifeEvent::Kind::save:
        return save(event);
      case LifeEvent::Kind::load:
      case LifeEvent::Kind::load_params:
        return load(event);
    }
  }

  void step() {
    const bool first = stage_ != Stage::all;
    const LifePart part = first ? LifePart::first_step : LifePart::step;
    begin(part);
    const OpId decision = now().program.decision;
    const auto skip = index_of(first ? LifePart::first_skip : LifePart::skip);
    bool skipped = false;
    if (skip && decision.valid()) {
      const std::uint32_t behind = decision.index + 1;
      walk_.enqueue(*now().issuer, 0, behind);
      skipped = nonfinite(decision);
      if (skipped) {
        take_up(*skip, Carry::behind_decision);
        now().issuer->begin_step(context());
      }
      walk_.enqueue(*now().issuer, behind, now().ops());
    } else {
      walk_.enqueue(*now().issuer, 0, now().ops());
    }
    instruments_.fetch(walk_.compute());
    end();
    StepNumbers numbers = instruments_.fetched();
    numbers.digest += now().issuer->host_digest();
    numbers.skipped = skipped;
    numbers.loss_scale = place_.loss_scale;
    record_.numbers.steps.push_back(numbers);
    const LifeShared::StepEnd all = shared_.end_step(index_, {numbers.digest, skipped});
    if (!skipped) stage_ = Stage::all;
    place_ = after_step(options_.training, place_, skipped, all.digest);
    if (skipped) return;
    if (const auto save = postponed_.due()) {
      write(*save);
      postponed_.made(*save, place_.steps);
    }
  }

  /// The op that looks has waited for the norm.
  bool nonfinite(OpId decision) {
    const BufferId norm = plan().ops[decision.index].buffer;
    return instruments_.look_at(static_cast<const char*>(memory_.at(norm)) + NormWords::kNonFinite) != 0;
  }

  void save(const LifeEvent& event) {
    if (stage_ != Stage::all && place_.steps == 0)
      throw InputError({}, "there is no state to save before the first step", "take a step first");
    if (stage_ != Stage::all) return postponed_.put_off(event);
    if (!postponed_.was_made(event, place_.steps)) write(event);
  }

  void write(const LifeEvent& event) {
    const std::string& directory = event.directory;
    const checkpoint::Description what = describe_checkpoint(plan(), shared_.job_ranks, place_, options_.training);
    shared_.meet([&] {
      checkpoint::require_newest(directory, place_.steps);
      if (event.measured) shared_.script.beside_save();
    });
    const auto begin = Clock::now();
    checkpoint_.begin_save(*programs_[wanted(LifePart::save)], directory, what);
    shared_.meet([&] { shared_.saving = checkpoint::partial_path(directory, place_.steps); });
    run_part(LifePart::save);
    checkpoint_.finish_save();
    shared_.meet([&] {
      if (shared_.processes == nullptr || shared_.processes->rank() == 0)
        shared_.committed = checkpoint::commit(directory, what, shared_.script.keep);
      shared_.saving.clear();
    });
    shared_.meet([&] { share_path(); });
    checkpoint_.end_save();
    note(true, shared_.committed, begin, checkpoint_.storage_seconds());
    if (event.measured) shared_.meet([&] { shared_.script.beside_save(); });
  }

  /// In the other processes.
  void share_path() {
    if (shared_.processes != nullptr) shared_.committed = shared_.processes->all_gather(shared_.committed)[0];
  }

  void load(const LifeEvent& event) {
    const bool params = event.kind == LifeEvent::Kind::load_params;
    if (params && stage_ == Stage::all) {
      throw InputError({}, "parameters alone are loaded before the first step",
                       "load all state, or begin a life with them");
    }
    const LifePart part = params ? LifePart::load_params : stage_ == Stage::all ? LifePart::reload : LifePart::load;
    const auto begin = Clock::now();
    shared_.meet([&] {
      const auto looking = Clock::now();
      shared_.reader.emplace(event.directory);
      shared_.looked_seconds = seconds_since(looking);
    });
    checkpoint_.begin_load(*programs_[wanted(part)], *shared_.reader);
    shared_.meet([&] { require_whole_job(!params); });
    run_part(part);  // when all ranks have found what they need
    checkpoint_.end_load();
    postponed_ = {};
    if (!params) {
      place_ = shared_.reader->description().place;
      stage_ = Stage::all;
    }
    note(false, shared_.reader->path(), begin, shared_.looked_seconds + checkpoint_.storage_seconds());
    shared_.meet([&] { shared_.reader.reset(); });
  }

  /// When every rank has found its own: nothing of the checkpoint is left over, and its run began as this one did.
  void require_whole_job(bool state) const {
    const checkpoint::Reader& reader = *shared_.reader;
    std::string taken = parameters_taken(reader, shared_.ranks);
    if (shared_.processes != nullptr)
      for (const std::string& other : shared_.processes->all_gather(taken))
        for (std::size_t p = 0; p < std::min(taken.size(), other.size()); ++p)
          if (other[p] == '1') taken[p] = '1';
    reader.require_none_left(taken);
    if (state) require_origin(reader, options_.training);
  }

  void note(bool saved, const std::string& path, Clock::time_point begin, double storage_seconds) {
    record_.numbers.checkpoints.push_back({saved, path, checkpoint_.bytes(), seconds_since(begin), storage_seconds});
  }

  // Parts.

  std::optional<std::size_t> index_of(LifePart part) const {
    for (std::size_t p = 0; p < parts_.size(); ++p)
      if (parts_[p]->part() == part) return p;
    return std::nullopt;
  }
  std::size_t wanted(LifePart part) const {
    const auto index = index_of(part);
    if (!index) {
      throw InputError({}, fmt::format("rank {}: no plan of part {}", plan().rank, name_of(part)),
                       "write the plans of all parts (ebb simulate --life)");
    }
    return *index;
  }

  void run_part(LifePart part) {
    begin(part);
    walk_.enqueue(*now().issuer, 0, now().ops());
    end();
  }

  StepContext context() const {
    const std::int64_t step = place_.steps + 1;
    const Injection* const injection = injection_of(options_.training, plan().rank, step);
    return {.step = static_cast<std::uint32_t>(step),
            .seed = place_.seed,
            .adam = kernels::adamw_step(options_.training.adam, place_.adam_steps + 1),
            .loss_scale = place_.loss_scale,
            .inject = injection == nullptr ? std::nullopt : std::optional(injection->value)};
  }

  void take_up(std::size_t part, Carry when) {
    memory_.take_up(part, when);
    current_ = part;
    walk_.take_up(now().program, now().issue);
  }

  /// On an idle device, as drain() has left it; goes on when all ranks are here.
  void begin(LifePart part) {
    take_up(wanted(part), Carry::between_parts);
    now().issuer->begin_step(context());
    walk_.begin_step(false);
    instruments_.begin_step(walk_.compute());
    walk_.finish();
    shared_.meet();
    walk_.start(nullptr, 0);
  }

  /// Waits for all that the part has begun (docs/life.md, between parts): the next may read what it moved.
  void drain() {
    walk_.finish();
    comms_->check();
  }

  void end() {
    drain();
    memory_.step_ended();
    memory_.sample_driver();
    record_.numbers.peaks.push_back({now().part(), walk_.live().peak(), now().planned});
  }

  void conclude() {
    const FinalDigest digest = final_digest(*programs_[current_], memory_, store_, walk_.compute());
    LifeNumbers& numbers = record_.numbers;
    numbers.final_state = digest.all;
    numbers.parameters = digest.parameters;
    numbers.place = place_;
    MemoryFigures& memory = numbers.memory;
    memory.live_peak = memory_.peak_live();
    memory.live_by_phase = walk_.live().by_phase();
    memory.torch_allocated_peak = memory_.torch_allocated_peak();
    memory.torch_reserved_peak = memory_.torch_reserved_peak();
    memory.driver_peak = memory_.driver_peak();
    memory.instruments = instruments_.bytes();
    memory.pinned = store_.pinned_bytes();
    memory.pageable = store_.pageable_bytes();
    for (const std::string& remark : store_.remarks())
      record_.remarks.push_back(fmt::format("rank {}: {}", plan().rank, remark));
    for (const auto& part : parts_) {
      if (part->stand_ins.remark().empty()) continue;
      record_.remarks.push_back(
          fmt::format("rank {}, {}: {}", plan().rank, name_of(part->part()), part->stand_ins.remark()));
    }
  }

  LifeShared& shared_;
  const ExecuteOptions& options_;
  std::size_t index_ = 0;
  std::vector<const Program*> programs_;
  std::vector<std::unique_ptr<ReadyPart>> parts_;  // as programs_
  HostStore store_;
  DeviceMemory memory_;
  Instruments instruments_;
  StepWalk walk_;
  HostPool pool_;
  std::optional<RankComms> comms_;
  CheckpointEnd checkpoint_;
  RankLifeRecord record_;
  std::size_t current_ = 0;  // into programs_
  Stage stage_ = Stage::nothing;
  TrainingPlace place_;
  PostponedSave postponed_;
};

}  // namespace

RankLifeRecord run_rank_life(const LifeRank& rank, std::size_t index, const RankPlace& place, LifeShared& shared) {
  set_device(place.device);
  RankLife life(rank, index, place, shared);
  try {
    return life.run();
  } catch (const Stopped&) {
    throw;
  } catch (...) {
    shared.stop(std::current_exception());  // before memory is freed, which waits for the device
    throw;
  }
}

}  // namespace ebb::replay
