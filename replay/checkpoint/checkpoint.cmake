# Checkpoints know nothing of plans' execution: only names, elements, bytes and files.
add_library(ebb_checkpoint STATIC
  checkpoint/block_writer.cpp
  checkpoint/commit.cpp
  checkpoint/content_meter.cpp
  checkpoint/directory.cpp
  checkpoint/file.cpp
  checkpoint/hash_check.cpp
  checkpoint/hashes.cpp
  checkpoint/manifest.cpp
  checkpoint/manifest_json.cpp
  checkpoint/parallel_names.cpp
  checkpoint/rank_writer.cpp
  checkpoint/reader.cpp
  checkpoint/reader_data.cpp
  checkpoint/safetensors.cpp
  checkpoint/unfinished.cpp
)
target_link_libraries(ebb_checkpoint PUBLIC ebb_models ebb_kernels_ref Threads::Threads
                      PRIVATE fmt::fmt nlohmann_json::nlohmann_json)
target_include_directories(ebb_checkpoint SYSTEM PRIVATE "${EBB_XXHASH_INCLUDE_DIR}")
# The sums over elements are loops that become vectors; integers, so that nothing of this changes a result.
set_source_files_properties(checkpoint/hashes.cpp PROPERTIES COMPILE_OPTIONS "-O3")
