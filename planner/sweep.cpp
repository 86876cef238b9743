#include "planner/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <future>
#include <thread>

#include "models/errors.hpp"
#include "planner/any_job.hpp"
#include "planner/constraints.hpp"
#include "planner/recommend.hpp"
#include "planner/set_value.hpp"

namespace ebb {

namespace {

struct RowJob {
  std::optional<Job> job;
  std::string obstacle;
};

std::vector<std::string> values_of_row(std::span<const SweepAxis> axes, std::size_t row) {
  std::vector<std::string> values(axes.size());
  for (std::size_t i = axes.size(); i-- > 0;) {
    values[i] = axes[i].values[row % axes[i].values.size()];
    row /= axes[i].values.size();
  }
  return values;
}

Job job_of(const std::string& file, std::span<const SweepAxis> axes, const std::vector<std::string>& values) {
  std::vector<Setting> settings;
  for (std::size_t i = 0; i < axes.size(); ++i) settings.push_back(parse_setting(axes[i].key + "=" + values[i]));
  return load_any_job(file, settings).job;
}

void fill_in(SweepRow& row, const Job& job, Megatron megatron) {
  const SearchResult result = search(job, {.megatron = megatron, .cures = false, .likely = true});
  if (result.recommended) {
    row.answer = result.candidates[*result.recommended];
    row.fits = true;
    return;
  }
  row.obstacle = result.shortfall;
  for (const Answer& answer : result.candidates)
    if (in_question(answer, job.offload.policy) && (!row.answer || smaller(answer, *row.answer))) row.answer = answer;
  if (row.answer && !row.answer->reason.empty()) row.obstacle = row.answer->reason;
}

}  // namespace

std::vector<SweepRow> sweep(const std::string& file, std::span<const SweepAxis> axes, Megatron megatron,
                            const std::function<void(Job&)>& finish) {
  std::size_t count = 1;
  for (const SweepAxis& axis : axes) {
    count *= axis.values.size();
    if (count > kMostSweepRows)
      throw InputError({"--set"}, fmt::format("these are more than {} combinations", kMostSweepRows),
                       "leave out some values");
  }
  std::vector<SweepRow> rows(count);
  std::vector<std::exception_ptr> broken(count);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      rows[i].values = values_of_row(axes, i);
      try {
        Job job = job_of(file, axes, rows[i].values);
        finish(job);
        check(job, megatron);
        fill_in(rows[i], job, megatron);
      } catch (const InputError& error) {
        rows[i].obstacle = error.what();
        broken[i] = std::current_exception();
      }
    }
  };
  std::vector<std::future<void>> threads;
  const std::size_t most = std::max(1U, std::thread::hardware_concurrency());
  for (std::size_t i = 0; i < std::min(count, most); ++i) threads.push_back(std::async(std::launch::async, work));
  for (std::future<void>& thread : threads) thread.get();
  if (std::all_of(broken.begin(), broken.end(), [](const std::exception_ptr& error) { return error != nullptr; }))
    std::rethrow_exception(broken.front());
  return rows;
}

}  // namespace ebb
