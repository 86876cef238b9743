// What is worth knowing of a model, a cluster, a policy, as facts for reports/library.hpp.
#pragma once

#include "models/cluster.hpp"
#include "models/model_spec.hpp"
#include "models/policy.hpp"
#include "reports/library.hpp"

namespace ebb {

/// Its parameters as Ebb counts them, its sizes, and where they come from.
reports::LibraryEntry facts_of(const ModelSpec& model);

/// Every figure with its source, those left at their default too.
reports::LibraryEntry facts_of(const Cluster& cluster);

/// What moves when, which flags turn it on, and which Megatron-LM has them.
reports::LibraryEntry facts_of(Policy policy);

}  // namespace ebb
