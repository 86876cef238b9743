#include "replay/state_init.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "kernels/digest.hpp"
#include "kernels/elementwise.hpp"
#include "replay/cuda.hpp"
#include "replay/host_store_pieces.hpp"
#include "replay/ready.hpp"
#include "replay/training.hpp"

namespace ebb::replay {

namespace {

constexpr Bytes kBounce = 64_MiB;

cudaStream_t cuda(void* stream) { return static_cast<cudaStream_t>(stream); }
void wait(void* stream) { check(cudaStreamSynchronize(cuda(stream)), "cudaStreamSynchronize"); }

Dtype type_of(const Precision& precision, StateBits state) {
  return state == kExpAvg ? precision.exp_avg : state == kExpAvgSq ? precision.exp_avg_sq : Dtype::fp32;
}

void* device_of(const StatePlace& place, const DeviceMemory& memory) {
  return static_cast<char*>(memory.at(place.device.buffer)) + place.device.at.value;
}

/// Calls each(first element, elements) for pieces of `place` that fit into the bounce buffer.
template <class Each>
void in_pieces(const StatePlace& place, std::int64_t element_bytes, Each&& each) {
  const std::int64_t piece = kBounce.value / element_bytes;
  const std::int64_t whole = place.elements.numel().value;
  for (std::int64_t i = 0; i < whole; i += piece) each(i, std::min(piece, whole - i));
}

void copy(void* to, const void* from, Bytes bytes, void* stream) {
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes.value), cudaMemcpyDefault, cuda(stream)),
        "cudaMemcpyAsync");
}

/// Copies between the bounce buffer and the host store, from byte `at` of the place on, and waits.
void bounce_copy(const StatePlace& place, const HostStore& store, std::int64_t at, std::int64_t bytes, bool to_host,
                 const DeviceBytes& bounce, void* stream) {
  std::byte* const base = place.host == Memory::pinned ? store.pinned() : store.pageable();
  const Bytes first{place.host_at.value + at};
  for_each_piece(first, {bytes}, [&](Bytes host_at, Bytes part) {
    std::byte* const host = base + host_at.value;
    void* const device = static_cast<char*>(bounce.get()) + (host_at - first).value;
    if (to_host) {
      copy(host, device, part, stream);
    } else {
      copy(device, host, part, stream);
    }
  });
  wait(stream);
}

void fill_master(kernels::Type type, void* base, std::int64_t padded, std::int64_t numel, std::uint64_t seed,
                 void* stream) {
  const kernels::Run run{0, padded, numel};
  check(kernels::launch_fill_random(type, base, {&run, 1}, seed, 1.0F, stream), "launch_fill_random");
}

/// Elements [first, first + numel) of the parameters to `to`. Types that random fills do not round to go through fp32.
void fill_params(kernels::Type type, char* to, std::int64_t first, std::int64_t whole, std::uint64_t seed,
                 const DeviceBytes& bounce, void* stream) {
  if (type == kernels::Type::fp32 || type == kernels::Type::bf16)
    return fill_master(type, to, first, whole, seed, stream);
  const std::int64_t piece = kBounce.value / 4;
  for (std::int64_t i = 0; i < whole; i += piece) {
    const std::int64_t numel = std::min(piece, whole - i);
    fill_master(kernels::Type::fp32, bounce.get(), first + i, numel, seed, stream);
    const kernels::CastRun run{0, i * kernels::bytes_of(type), numel};
    const kernels::CastArrays arrays{bounce.get(), to, kernels::Type::fp32, type, 1};
    check(kernels::launch_cast(arrays, {&run, 1}, stream), "launch_cast");
  }
}

/// Calls each(bucket, type of its elements, its first byte) for the buckets of the parameter buffer.
template <class Each>
void for_each_bucket(const Plan& plan, Each&& each) {
  Bytes at{0};
  for (const PlanBucket& bucket : plan.buckets) {
    const Dtype type = bucket.quantized ? Dtype::fp8 : plan.precision.params;
    each(bucket, type, at);
    at += bytes_of(bucket.numel(), size_of(type));
  }
}

void zero(void* at, Bytes bytes, void* stream) {
  check(cudaMemsetAsync(at, 0, static_cast<std::size_t>(bytes.value), cuda(stream)), "cudaMemsetAsync");
}

}  // namespace

void init_state(const Program& program, const DeviceMemory& memory, const HostStore& store, std::uint64_t seed,
                void* stream) {
  const DeviceBytes bounce = make_device_bytes(kBounce);
  if (program.params.valid()) {
    fill_params(kernel_type(program.plan->precision.params), static_cast<char*>(memory.at(program.params)), 0,
                program.padded.value, seed, bounce, stream);
  }
  for (const StatePlace& place : program.before) {
    const std::int64_t size = size_of(type_of(program.plan->precision, place.state));
    if (place.on_device) {
      void* const base = device_of(place, memory);
      const std::int64_t numel = place.elements.numel().value;
      if (place.state == kMaster) {
        fill_master(kernels::Type::fp32, base, place.at.value, numel, seed, stream);
      } else {
        check(cudaMemsetAsync(base, 0, static_cast<std::size_t>(numel * size), cuda(stream)), "cudaMemsetAsync");
      }
    } else if (place.state == kMaster) {
      in_pieces(place, size, [&](std::int64_t first, std::int64_t numel) {
        fill_master(kernels::Type::fp32, bounce.get(), place.at.value + first, numel, seed, stream);
        bounce_copy(place, store, first * size, numel * size, true, bounce, stream);
      });
    }
  }
  wait(stream);
}

void init_parameters(const Program& init, const DeviceMemory& memory, std::uint64_t seed, void* stream) {
  const DeviceBytes bounce = make_device_bytes(kBounce);
  auto* const params = static_cast<char*>(memory.at(init.params));
  for_each_bucket(*init.plan, [&](const PlanBucket& bucket, Dtype type, Bytes at) {
    if (bucket.quantized) {
      zero(params + at.value, {bucket.numel().value}, stream);
    } else {
      fill_params(kernel_type(type), params + at.value, bucket.begin.value, bucket.numel().value, seed, bounce, stream);
    }
  });
  if (init.quantized) {
    for (const BufferId buffer : {init.quantized->scales, init.quantized->columns}) {
      if (!buffer.valid() || memory.at(buffer) == nullptr) continue;
      zero(memory.at(buffer), init.plan->buffers[buffer.index].bytes, stream);
    }
  }
  wait(stream);
}

FinalDigest final_digest(const Program& program, const DeviceMemory& memory, const HostStore& store, void* stream) {
  const DeviceBytes bounce = make_device_bytes(kBounce);
  const DeviceBytes sum = make_device_bytes({8});
  check(cudaMemsetAsync(sum.get(), 0, 8, cuda(stream)), "cudaMemsetAsync");
  const auto add = [&](Dtype type, StateBits state, const void* base, std::int64_t index, std::int64_t numel) {
    const kernels::Run run{0, index, numel};
    check(kernels::launch_digest(kernel_type(type), base, {&run, 1}, digest_tag(state),
                                 static_cast<std::uint64_t*>(sum.get()), stream),
          "launch_digest");
  };
  for (const StatePlace& place : program.after) {
    const Dtype type = type_of(program.plan->precision, place.state);
    if (place.on_device) {
      add(type, place.state, device_of(place, memory), place.elements.begin, place.elements.numel().value);
      continue;
    }
    in_pieces(place, size_of(type), [&](std::int64_t first, std::int64_t numel) {
      bounce_copy(place, store, first * size_of(type), numel * size_of(type), false, bounce, stream);
      add(type, place.state, bounce.get(), place.elements.begin + first, numel);
    });
  }
  const auto so_far = [&] {
    std::uint64_t digest = 0;
    copy(&digest, sum.get(), {8}, stream);
    wait(stream);
    return digest;
  };
  const std::uint64_t state = so_far();
  for_each_bucket(*program.plan, [&](const PlanBucket& bucket, Dtype type, Bytes at) {
    add(type, kParams, static_cast<char*>(memory.at(program.params)) + at.value, bucket.begin.value,
        bucket.numel().value);
  });
  if (program.quantized) {
    const BufferId scales = program.quantized->scales;
    add(Dtype::fp8, kGrads, memory.at(scales), 0, program.plan->buffers[scales.index].bytes.value);
  }
  const std::uint64_t all = so_far();
  return {all, all - state};
}

}  // namespace ebb::replay
