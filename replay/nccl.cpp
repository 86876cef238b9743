#include "replay/nccl.hpp"

#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <utility>

#include "models/errors.hpp"
#include "replay/execute.hpp"
#include "replay/nccl_library.hpp"

namespace ebb::replay {

namespace {

[[noreturn]] void fail(NcclResult result, const char* call, NcclHandle comm) {
  const char* last = nccl().get_last_error(comm);
  const std::string detail = last != nullptr && *last != '\0' ? fmt::format(" ({})", last) : "";
  throw NcclError(fmt::format("{}: {}{}; NCCL_DEBUG=WARN says more", call, nccl().get_error_string(result), detail));
}

void checked(NcclResult result, const char* call, NcclHandle comm) {
  if (result != kNcclSuccess) fail(result, call, comm);
}

NcclDataType type_of(Dtype type) {
  switch (type) {
    case Dtype::fp32:
      return kNcclFloat32;
    case Dtype::bf16:
      return kNcclBfloat16;
    case Dtype::fp16:
      return kNcclFloat16;
    case Dtype::fp8:
      break;
  }
  throw InputError({}, "fp8 elements in a collective", "replay sums and gathers fp32, bf16 and fp16");
}

std::byte* part_of(void* data, Numel part, int rank, Dtype type) {
  return static_cast<std::byte*>(data) + part.value * rank * size_of(type);
}

}  // namespace

void load_nccl() { nccl(); }

/// NCCL's own code: major * 10000 + minor * 100 + patch.
std::string nccl_version() {
  int version = 0;
  checked(nccl().get_version(&version), "ncclGetVersion", nullptr);
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

NcclId new_nccl_id() {
  NcclUniqueId made{};
  checked(nccl().get_unique_id(&made), "ncclGetUniqueId", nullptr);
  NcclId id;
  static_assert(sizeof(made.internal) == sizeof(id.bytes));
  std::memcpy(id.bytes.data(), made.internal, id.bytes.size());
  return id;
}

// ncclCommInitRank blocks until all have come, as does ncclCommInitRankConfig by default; it takes no configuration,
// whose layout changes between versions of the library.
NcclComm::NcclComm(const NcclId& id, int rank, int size)
    : rank_(rank), size_(size), exceptions_(std::uncaught_exceptions()) {
  EBB_ASSERT(size > 0 && rank >= 0 && rank < size);
  NcclUniqueId unique{};
  std::memcpy(unique.internal, id.bytes.data(), id.bytes.size());
  NcclHandle comm = nullptr;
  checked(nccl().comm_init_rank(&comm, size, unique, rank), "ncclCommInitRank", nullptr);
  comm_ = comm;
}

// Destroying waits for what the other ranks still have to do: after a failure that may be for ever.
NcclComm::~NcclComm() {
  const NcclHandle comm = comm_.exchange(nullptr);
  if (comm == nullptr) return;
  if (failed_ || std::uncaught_exceptions() > exceptions_) {
    (void)nccl().comm_abort(comm);
  } else {
    (void)nccl().comm_destroy(comm);
  }
}

NcclComm::NcclComm(NcclComm&& other) noexcept
    : comm_(other.comm_.exchange(nullptr)),
      rank_(other.rank_),
      size_(other.size_),
      failed_(other.failed_),
      exceptions_(other.exceptions_) {}

NcclComm& NcclComm::operator=(NcclComm&& other) noexcept {
  other.comm_ = comm_.exchange(other.comm_);
  std::swap(rank_, other.rank_);
  std::swap(size_, other.size_);
  std::swap(failed_, other.failed_);
  std::swap(exceptions_, other.exceptions_);
  return *this;
}

void NcclComm::enqueued(int result, const char* call) {
  if (result == kNcclSuccess) return;
  failed_ = true;
  fail(static_cast<NcclResult>(result), call, comm_);
}

void NcclComm::all_gather(void* data, Numel part, Dtype type, void* stream) {
  enqueued(nccl().all_gather(part_of(data, part, rank_, type), data, static_cast<std::size_t>(part.value),
                             type_of(type), comm_, stream),
           "ncclAllGather");
}

void NcclComm::reduce_scatter(void* data, Numel part, Dtype type, void* stream) {
  enqueued(nccl().reduce_scatter(data, part_of(data, part, rank_, type), static_cast<std::size_t>(part.value),
                                 type_of(type), kNcclSum, comm_, stream),
           "ncclReduceScatter");
}

void NcclComm::all_reduce(void* data, Numel numel, Dtype type, void* stream) {
  enqueued(nccl().all_reduce(data, data, static_cast<std::size_t>(numel.value), type_of(type), kNcclSum, comm_, stream),
           "ncclAllReduce");
}

void NcclComm::all_gather_bytes(void* data, Bytes part, void* stream) {
  std::byte* const own = static_cast<std::byte*>(data) + part.value * rank_;
  enqueued(nccl().all_gather(own, data, static_cast<std::size_t>(part.value), kNcclUint8, comm_, stream),
           "ncclAllGather");
}

// Of numbers that are not negative the bits are ordered as the numbers are, and those of every nan lie behind those of
// inf: an fp32 maximum may lose a nan, that of the bits does not.
void NcclComm::all_reduce_max(void* data, Numel numel, void* stream) {
  enqueued(nccl().all_reduce(data, data, static_cast<std::size_t>(numel.value), kNcclUint32, kNcclMax, comm_, stream),
           "ncclAllReduce");
}

void NcclComm::check() {
  NcclResult result = kNcclSuccess;
  enqueued(nccl().comm_get_async_error(comm_, &result), "ncclCommGetAsyncError");
  if (result != kNcclInProgress) enqueued(result, "a collective");
}

void NcclComm::abort() noexcept {
  if (const NcclHandle comm = comm_.exchange(nullptr)) (void)nccl().comm_abort(comm);
}

NcclGroup::NcclGroup() {
  checked(nccl().group_start(), "ncclGroupStart", nullptr);
  open_ = true;
}

NcclGroup::~NcclGroup() {
  if (open_) (void)nccl().group_end();
}

void NcclGroup::end() {
  open_ = false;
  checked(nccl().group_end(), "ncclGroupEnd", nullptr);
}

}  // namespace ebb::replay
