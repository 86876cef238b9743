#include "planner/answers.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>
#include <utility>

#include "planner/candidates.hpp"
#include "planner/recommend.hpp"
#include "planner/rules.hpp"

namespace ebb {

Answers::Answers(const Job& job, Megatron megatron, std::optional<Start> also_as)
    : megatron_(megatron), evaluator_(job) {
  if (also_as && *also_as != job.checkpoint.start) {
    other_job_ = std::make_unique<Job>(job);
    other_job_->checkpoint.start = *also_as;
    other_ = std::make_unique<Evaluator>(*other_job_);
  }
  for (const Candidate& candidate : candidates_of(job, evaluator_.deciding_shards())) {
    std::vector<Family>& families = families_[candidate.policy];
    if (families.empty() || families.back().front().fraction != candidate.fraction) families.emplace_back();
    families.back().push_back(candidate);
    ++progress_.total;
  }
  resident_step_ = of(Candidate{}).step;
}

const std::vector<Family>& Answers::families(Policy policy) const {
  static const std::vector<Family> kNone;
  const auto known = families_.find(policy);
  return known == families_.end() ? kNone : known->second;
}

bool Answers::deployable(Policy policy) {
  const auto [known, is_new] = deployable_.emplace(policy, false);
  if (is_new)
    known->second = requirement_of(job().precision, policy) != "ebb" && accepts(megatron_, policy) &&
                    objection_to(job(), {.policy = policy}).empty();
  return known->second;
}

bool Answers::in_question(Policy policy) {
  const std::optional<Policy> fixed = job().offload.policy;
  if (fixed && policy != *fixed) return false;
  return deployable(policy) || (asked_for_by_name(policy, fixed) && objection_to(job(), {.policy = policy}).empty());
}

const Answer& Answers::of(const Candidate& candidate) {
  const auto known = answers_.find(candidate);
  if (known != answers_.end()) return known->second;
  Answer answer = evaluator_.answer(candidate);
  answer.deployable = deployable(candidate.policy);
  answer.reason = obstacle_of(answer, device_budget_of(job()), host_budget_of(job()));
  if (answer.reason.empty()) answer.reason = "fits the device and the host";
  const Answer& kept = answers_.emplace(candidate, std::move(answer)).first->second;
  show(kept);
  return kept;
}

void Answers::watch(std::function<void(const SearchProgress&)> progress) { show_ = std::move(progress); }

void Answers::show(const Answer& answer) {
  if (!show_) return;
  if (answer.feasible() && (progress_.best == nullptr || answer.step < progress_.best->step)) progress_.best = &answer;
  progress_.done = std::min(progress_.done + 1, progress_.total);
  show_(progress_);
}

void Answers::settle(Policy policy) {
  for (const Family& family : families(policy)) settled_ += static_cast<std::int64_t>(family.size());
  progress_.done = settled_;
}

bool Answers::runs(const Answer& answer) {
  const auto [known, is_new] = runs_.emplace(answer.candidate, false);
  if (is_new) known->second = evaluator_.runs_within_budget(answer) && (!other_ || other_->runs_within_budget(answer));
  return known->second;
}

void Answers::replay(const std::vector<Answer*>& answers, bool resume) const {
  std::vector<std::future<void>> replays;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < answers.size(); i = next++) {
      evaluator_.replay_allocator(*answers[i]);
      if (other_) other_->replay_allocator(*answers[i]);
      if (resume) evaluator_.replay_resume(*answers[i]);
    }
  };
  const std::size_t threads = std::min<std::size_t>(answers.size(), std::max(1U, std::thread::hardware_concurrency()));
  for (std::size_t i = 0; i < threads; ++i) replays.push_back(std::async(std::launch::async, work));
  for (std::future<void>& replay : replays) replay.get();
  for (Answer* answer : answers)
    if (!answer->fits_device) answer->reason = obstacle_of(*answer, device_budget_of(job()), host_budget_of(job()));
}

}  // namespace ebb
