#include "replay/nccl_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "replay/execute.hpp"

#if __has_include(<nccl.h>)
#include <nccl.h>
static_assert(sizeof(ncclUniqueId) == sizeof(ebb::replay::NcclUniqueId));
static_assert(sizeof(ncclResult_t) == sizeof(int) && sizeof(ncclDataType_t) == sizeof(int));
static_assert(int{ncclSuccess} == ebb::replay::kNcclSuccess && int{ncclInProgress} == ebb::replay::kNcclInProgress);
static_assert(int{ncclFloat16} == ebb::replay::kNcclFloat16 && int{ncclFloat32} == ebb::replay::kNcclFloat32);
static_assert(int{ncclBfloat16} == ebb::replay::kNcclBfloat16 && int{ncclSum} == ebb::replay::kNcclSum);
static_assert(int{ncclUint8} == ebb::replay::kNcclUint8 && int{ncclUint32} == ebb::replay::kNcclUint32);
static_assert(int{ncclMax} == ebb::replay::kNcclMax);
#endif

namespace ebb::replay {

namespace {

constexpr const char* kFile = "libnccl.so.2";
constexpr int kOldest = 21300;  // 2.13: ncclGetLastError; encoded as major * 10000 + minor * 100 + patch

/// By name, as the system finds it, then in places where toolkits put it.
void* open_library() {
  if (void* library = dlopen(kFile, RTLD_NOW | RTLD_LOCAL)) return library;
  const std::string why = dlerror();
  const auto in = [](const std::string& directory) {
    return dlopen((directory + "/" + kFile).c_str(), RTLD_NOW | RTLD_LOCAL);
  };
  for (const char* variable : {"NCCL_ROOT", "NCCL_HOME", "CUDA_HOME", "CUDA_PATH"}) {
    const char* root = std::getenv(variable);
    if (root == nullptr) continue;
    for (const char* below : {"/lib", "/lib64"}) {
      if (void* library = in(std::string(root) + below)) return library;
    }
  }
  for (const char* directory : {"/usr/local/cuda/lib64", "/usr/local/cuda/lib"}) {
    if (void* library = in(directory)) return library;
  }
  throw NcclError(fmt::format(
      "plans of several ranks need NCCL, and {} does not load ({}); install libnccl2, or name its directory "
      "in LD_LIBRARY_PATH (PyTorch brings one: .../site-packages/nvidia/nccl/lib)",
      kFile, why));
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw NcclError(fmt::format("{} has no {}; install NCCL 2.13 or newer", kFile, name));
}

// NVLink SHARP (nccl.hpp) only where the user asks for it.
NcclLibrary load() {
  setenv("NCCL_NVLS_ENABLE", "0", 0);
  void* library = open_library();  // stays loaded
  NcclLibrary nccl;
  find(library, "ncclGetVersion", nccl.get_version);
  find(library, "ncclGetUniqueId", nccl.get_unique_id);
  find(library, "ncclCommInitRank", nccl.comm_init_rank);
  find(library, "ncclCommDestroy", nccl.comm_destroy);
  find(library, "ncclCommAbort", nccl.comm_abort);
  find(library, "ncclCommGetAsyncError", nccl.comm_get_async_error);
  find(library, "ncclGetErrorString", nccl.get_error_string);
  find(library, "ncclGetLastError", nccl.get_last_error);
  find(library, "ncclGroupStart", nccl.group_start);
  find(library, "ncclGroupEnd", nccl.group_end);
  find(library, "ncclAllGather", nccl.all_gather);
  find(library, "ncclReduceScatter", nccl.reduce_scatter);
  find(library, "ncclAllReduce", nccl.all_reduce);
  int version = 0;
  if (nccl.get_version(&version) != kNcclSuccess || version < kOldest) {
    throw NcclError(fmt::format("{} is version code {}; install NCCL 2.13 or newer", kFile, version));
  }
  return nccl;
}

}  // namespace

const NcclLibrary& nccl() {
  static const NcclLibrary library = load();
  return library;
}

}  // namespace ebb::replay
