// Job from and to YAML (design: "Files a user writes"): the keys, their defaults and ranges, and the model and cluster
// that the job names, gives by path, or describes in place. Whether model, cluster and parallel sizes fit each other
// is planner/constraints' question; it finds the places of keys in Job::places.
#pragma once

#include <string>

#include "models/job.hpp"
#include "models/yaml_tree.hpp"

namespace ebb {

/// A file, or the name of a job in the library. InputError names file, line, column and cure; IoError when a file
/// exists and cannot be read. Afterwards parallel.expert_tensor is resolved and recompute.modules is filled in.
Job load_job(const std::string& file);

/// The same file as a tree, before it is read as a job.
struct JobTree {
  std::string file;
  YamlNode root;
};
JobTree load_job_tree(const std::string& file);

/// The job in `node`, as read from `file` (relative paths in it start at its directory).
Job read_job(const YamlNode& node, const std::string& file);

/// A job file with model and cluster in place; loads back to an equal Job apart from name, file and places. With
/// `cluster` that stands in the cluster's place: a name of the library that holds the job's cluster.
std::string write_job(const Job& job, const std::string& cluster = "");

}  // namespace ebb
