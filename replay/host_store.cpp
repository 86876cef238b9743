#include "replay/host_store.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <utility>

#include "models/errors.hpp"
#include "models/quantity_text.hpp"
#include "replay/cuda.hpp"
#include "replay/host_store_pieces.hpp"
#include "replay/host_store_region.hpp"
#include "replay/numa.hpp"

namespace ebb::replay {

namespace {

/// A region that the driver knows as pinned.
class RegisteredRegion {
 public:
  RegisteredRegion() = default;
  ~RegisteredRegion() { unregister(); }
  RegisteredRegion(const RegisteredRegion&) = delete;
  RegisteredRegion& operator=(const RegisteredRegion&) = delete;

  /// cudaSuccess, or what the driver said to the first piece that it did not take; then nothing is registered.
  cudaError_t pin(const HostRegion& region) {
    cudaError_t result = cudaSuccess;
    for_each_piece({0}, region.bytes(), [&](Bytes at, Bytes bytes) {
      if (result != cudaSuccess) return;
      std::byte* begin = region.data() + at.value;
      result = cudaHostRegister(begin, static_cast<std::size_t>(bytes.value), cudaHostRegisterPortable);
      if (result == cudaSuccess) pieces_.push_back(begin);
    });
    if (result != cudaSuccess) {
      unregister();
      cudaGetLastError();  // it is reported by who called
    }
    return result;
  }

 private:
  void unregister() {
    for (; !pieces_.empty(); pieces_.pop_back()) cudaHostUnregister(pieces_.back());
  }
  std::vector<std::byte*> pieces_;
};

struct CudaHostFree {
  void operator()(std::byte* data) const { cudaFreeHost(data); }
};
using CudaHostMemory = std::unique_ptr<std::byte, CudaHostFree>;

}  // namespace

// Members are destroyed from the last to the first: unregistered before it is unmapped.
struct HostStore::Parts {
  HostRegion pageable;
  HostRegion region;
  RegisteredRegion registered;
  CudaHostMemory allocated;  // instead of `region`
  std::byte* pinned = nullptr;
  Bytes pinned_bytes{0};
  std::vector<std::string> remarks;

  void allocate_pinned(Bytes bytes, std::optional<int> node, const char* why);
};

/// The driver gets the memory itself. It may succeed where registering does not (systems that cannot pin foreign
/// pages).
void HostStore::Parts::allocate_pinned(Bytes bytes, std::optional<int> node, const char* why) {
  region = {};
  const PreferNode prefer(node);
  void* data = nullptr;
  const cudaError_t result = cudaHostAlloc(&data, static_cast<std::size_t>(bytes.value), cudaHostAllocPortable);
  if (result != cudaSuccess) {
    cudaGetLastError();
    throw IoError(fmt::format("cannot pin {} of host memory (cudaHostRegister: {}; cudaHostAlloc: {}): {}",
                              format_bytes(bytes), why, cudaGetErrorString(result),
                              explain_pin_failure(bytes, read_host_limits())));
  }
  allocated.reset(static_cast<std::byte*>(data));
  pinned = allocated.get();
  std::memset(pinned, 0, static_cast<std::size_t>(bytes.value));
  remarks.push_back(fmt::format("host memory comes from cudaHostAlloc: cudaHostRegister said {}", why));
}

HostStore::HostStore(const HostStoreOptions& options) : parts_(std::make_unique<Parts>()) {
  const HostVerdict verdict = judge_host_memory(options.pinned, options.pageable, read_host_limits());
  if (!verdict.refusal.empty()) throw IoError(verdict.refusal);
  if (!verdict.remark.empty()) parts_->remarks.push_back(verdict.remark);

  FillOptions fill{.node = numa_node_of(pci_bus_id(options.device)), .threads = options.threads};
  parts_->pinned_bytes = options.pinned;
  parts_->pageable = HostRegion(options.pageable, fill);
  if (options.pinned.value == 0) return;
  parts_->region = HostRegion(options.pinned, fill);
  parts_->pinned = parts_->region.data();
  if (fill.node && !parts_->region.placed()) {
    parts_->remarks.push_back(fmt::format("host memory is not placed on NUMA node {}: the kernel refuses", *fill.node));
  }
  const cudaError_t result = parts_->registered.pin(parts_->region);
  if (result != cudaSuccess) parts_->allocate_pinned(options.pinned, fill.node, cudaGetErrorString(result));
}

HostStore::HostStore() = default;
HostStore::~HostStore() = default;
HostStore::HostStore(HostStore&& other) noexcept = default;
HostStore& HostStore::operator=(HostStore&& other) noexcept = default;

std::byte* HostStore::pinned() const { return parts_ ? parts_->pinned : nullptr; }
std::byte* HostStore::pageable() const { return parts_ ? parts_->pageable.data() : nullptr; }
Bytes HostStore::pinned_bytes() const { return parts_ ? parts_->pinned_bytes : Bytes{0}; }
Bytes HostStore::pageable_bytes() const { return parts_ ? parts_->pageable.bytes() : Bytes{0}; }

const std::vector<std::string>& HostStore::remarks() const {
  static const std::vector<std::string> none;
  return parts_ ? parts_->remarks : none;
}

}  // namespace ebb::replay
