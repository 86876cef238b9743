// The parts of a job that job_of() fills in one after the other, each with Megatron-LM main's defaults.
#pragma once

#include <string>
#include <string_view>

#include "planner/megatron_arguments.hpp"
#include "planner/megatron_values.hpp"

namespace ebb {

/// What is read and what comes of it.
struct MegatronImport {
  const MegatronValues& values;
  ImportedJob& result;

  Job& job() const { return result.job; }
  void note(ImportNoteKind kind, std::string_view argument, std::string text) const {
    result.notes.push_back({kind, std::string(argument), std::move(text)});
  }
};

void import_model(const MegatronImport& in);
void import_parallel(const MegatronImport& in);  // needs the model
void import_batch(const MegatronImport& in);     // needs the parallel sizes
void import_precision(const MegatronImport& in);
void import_recompute(const MegatronImport& in);
void import_offload(const MegatronImport& in);
void import_settings(const MegatronImport& in);  // optimizer, activations, experts, checkpoint, runtime

/// --ddp-num-buckets: elements of a bucket of the rank that has buckets. Needs all of the above.
void import_bucket_count(const MegatronImport& in);

}  // namespace ebb
