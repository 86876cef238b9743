// The part of NCCL's C interface that replay calls, and the functions of a library that was loaded.
//
// Declared here, not included: a build without nccl.h still works with NCCL at run time. These types and numbers have
// been the same since NCCL 2.10 (bfloat16) and are compared with nccl.h where a build has it (nccl_library.cpp).
#pragma once

#include <array>
#include <cstddef>

namespace ebb::replay {

struct NcclUniqueId {
  char internal[128];
};
enum NcclResult : int { kNcclSuccess = 0, kNcclInProgress = 7 };
enum NcclDataType : int { kNcclUint8 = 1, kNcclUint32 = 3, kNcclFloat16 = 6, kNcclFloat32 = 7, kNcclBfloat16 = 9 };
enum NcclRedOp : int { kNcclSum = 0, kNcclMax = 2 };
using NcclHandle = void*;  // ncclComm_t
using NcclStream = void*;  // cudaStream_t

struct NcclLibrary {
  NcclResult (*get_version)(int* version) = nullptr;
  NcclResult (*get_unique_id)(NcclUniqueId* id) = nullptr;
  NcclResult (*comm_init_rank)(NcclHandle* comm, int ranks, NcclUniqueId id, int rank) = nullptr;
  NcclResult (*comm_destroy)(NcclHandle comm) = nullptr;
  NcclResult (*comm_abort)(NcclHandle comm) = nullptr;
  NcclResult (*comm_get_async_error)(NcclHandle comm, NcclResult* error) = nullptr;
  const char* (*get_error_string)(NcclResult result) = nullptr;
  const char* (*get_last_error)(NcclHandle comm) = nullptr;
  NcclResult (*group_start)() = nullptr;
  NcclResult (*group_end)() = nullptr;
  NcclResult (*all_gather)(const void* from, void* to, std::size_t count, NcclDataType type, NcclHandle comm,
                           NcclStream stream) = nullptr;
  NcclResult (*reduce_scatter)(const void* from, void* to, std::size_t count, NcclDataType type, NcclRedOp op,
                               NcclHandle comm, NcclStream stream) = nullptr;
  NcclResult (*all_reduce)(const void* from, void* to, std::size_t count, NcclDataType type, NcclRedOp op,
                           NcclHandle comm, NcclStream stream) = nullptr;
};

/// Loads it once a process. NcclError where there is none or it is too old.
const NcclLibrary& nccl();

}  // namespace ebb::replay
