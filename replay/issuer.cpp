#include "replay/issuer.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "kernels/digest.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/gemm.hpp"
#include "kernels/norm.hpp"
#include "kernels/objective.hpp"
#include "models/errors.hpp"
#include "replay/cuda.hpp"
#include "replay/host_masters.hpp"
#include "replay/host_store_pieces.hpp"
#include "replay/quantized_gpu.hpp"

namespace ebb::replay {

/// One op on its way; a call operator for each kind of action.
struct Issuer::Issue {
  Issuer& self;
  std::uint32_t op;
  void* stream;

  const IssuerParts& parts() const { return self.parts_; }
  const Precision& precision() const { return parts().program.plan->precision; }
  cudaStream_t cuda() const { return static_cast<cudaStream_t>(stream); }
  char* at(BufferId buffer, std::int64_t offset = 0) const {
    void* const address = self.addresses_ != nullptr ? (*self.addresses_)[buffer.index] : parts().memory.at(buffer);
    char* const base = static_cast<char*>(address);
    EBB_ASSERT(base != nullptr);
    return base + offset;
  }

  void operator()(const Nothing&) const {}
  void operator()(const Copy& copy) const {
    std::byte* const pinned = parts().store.pinned();
    for (const Transfer& transfer : copy.transfers) {
      char* const device = at(transfer.device.buffer, transfer.device.at.value);
      for_each_piece(transfer.host_at, transfer.bytes, [&](Bytes host_at, Bytes bytes) {
        void* const there = device + (host_at - transfer.host_at).value;
        void* const host = pinned + host_at.value;
        const auto size = static_cast<std::size_t>(bytes.value);
        check(copy.to_device ? cudaMemcpyAsync(there, host, size, cudaMemcpyHostToDevice, cuda())
                             : cudaMemcpyAsync(host, there, size, cudaMemcpyDeviceToHost, cuda()),
              "cudaMemcpyAsync");
      });
    }
  }

  void operator()(const ReadyAdam& adam) const {
    kernels::AdamwArrays arrays = adam.types;
    arrays.grad = at(adam.grads);
    arrays.exp_avg = at(adam.moments);
    arrays.exp_avg_sq = at(adam.moments);
    arrays.master = at(adam.masters);
    arrays.param = adam.params.valid() ? at(adam.params) : nullptr;
    if (adam.foreach) {
      check(kernels::launch_adamw_foreach(arrays, adam.runs, self.context_.adam, at(adam.scratch), stream),
            "launch_adamw_foreach");
    } else {
      check(kernels::launch_adamw(arrays, adam.runs, self.context_.adam, stream), "launch_adamw");
    }
    if (!parts().options.training.digests) return;
    for (const DigestRuns& digest : adam.digests) {
      const void* const base = at(digest.state == kMaster ? adam.masters : adam.moments);
      check(kernels::launch_digest(digest.type, base, digest.runs, digest_tag(digest.state),
                                   parts().instruments.digest(), stream),
            "launch_digest");
    }
  }

  void operator()(const ReadyHostAdam& adam) const {
    const HostStore& store = parts().store;
    host_adam(parts().pool, {store.pinned(), store.pageable(), store.pageable(), store.pinned()}, adam.runs,
              self.context_.adam);
    if (!parts().options.training.digests) return;
    for (const DigestRuns& digest : adam.digests) {
      const std::byte* const base = digest.state == kMaster ? store.pinned() : store.pageable();
      self.host_digest_ += replay::host_digest(parts().pool, base, digest.runs, digest_tag(digest.state));
    }
  }

  void operator()(const ReadyCast& cast) const {
    check(kernels::launch_cast({at(cast.from), at(cast.to), cast.from_type, cast.to_type, 1}, cast.runs, stream),
          "launch_cast");
  }

  float* word(BufferId norm, std::int64_t offset) const { return reinterpret_cast<float*>(at(norm, offset)); }

  /// The sum of squares leaves the norm buffer before that is released.
  void keep_sum(BufferId norm) const {
    check(cudaMemcpyAsync(parts().instruments.sum_of_squares(), word(norm, NormWords::kSumOfSquares), sizeof(float),
                          cudaMemcpyDeviceToDevice, cuda()),
          "cudaMemcpyAsync");
  }

  void operator()(const ReadyNorm& norm) const {
    check(kernels::launch_sum_of_squares(norm.type, at(norm.grads), norm.runs, parts().instruments.workspace(),
                                         word(norm.norm, NormWords::kSumOfSquares), stream),
          "launch_sum_of_squares");
    if (!self.has_clip_) keep_sum(norm.norm);
  }

  void operator()(const ReadyClip& clip) const {
    keep_sum(clip.norm);
    float* const coefficient = word(clip.norm, NormWords::kCoefficient);
    kernels::Clip words;
    words.sum = word(clip.norm, NormWords::kSumOfSquares);
    words.coefficient = coefficient;
    words.nonfinite = reinterpret_cast<std::uint32_t*>(at(clip.norm, NormWords::kNonFinite));
    check(kernels::launch_clip_coefficient(words, parts().options.training.max_norm, stream,
                                           1 / self.context_.loss_scale),
          "launch_clip_coefficient");
    check(kernels::launch_scale(clip.type, at(clip.grads), clip.runs, coefficient, stream), "launch_scale");
  }

  void operator()(const ZeroGrads& zero) const {
    const std::int64_t bytes = parts().program.padded.value * size_of(precision().grads);
    check(cudaMemsetAsync(at(zero.grads), 0, static_cast<std::size_t>(bytes), cuda()), "cudaMemsetAsync");
  }

  NcclComm* comm() const { return parts().comms.of(op, parts().program_index); }

  void operator()(const BucketCollective& collective) const {
    NcclComm* const ranks = comm();
    if (ranks == nullptr) return;
    char* const base = at(collective.buffer);
    NcclGroup group;
    for (const ElementRange& bucket : collective.buckets) {
      void* const data = base + bucket.begin * size_of(collective.type);
      const Numel part{bucket.numel().value / ranks->size()};
      if (collective.work == Work::all_gather) {
        ranks->all_gather(data, part, collective.type, stream);
      } else if (collective.work == Work::reduce_scatter) {
        ranks->reduce_scatter(data, part, collective.type, stream);
      } else {
        ranks->all_reduce(data, bucket.numel(), collective.type, stream);
      }
    }
    for (const BucketCollective::Part& bytes : collective.bytes)
      ranks->all_gather_bytes(at(bytes.buffer, bytes.at.value), {bytes.bytes.value / ranks->size()}, stream);
    group.end();
  }

  void operator()(const NormCollective& collective) const {
    if (NcclComm* const ranks = comm())
      ranks->all_reduce(word(collective.norm, NormWords::kSumOfSquares), {1}, Dtype::fp32, stream);
  }

  void operator()(const LargestCollective& collective) const {
    if (NcclComm* const ranks = comm()) ranks->all_reduce_max(at(collective.largest), collective.numel, stream);
  }

  void operator()(const Stand& stand) const {
    const Program& program = parts().program;
    if (stand.fills()) {
      // No loss, no gradients.
    } else if (program.quantized) {
      on_values(stand);
    } else {
      const kernels::ObjectiveParams params{at(program.params, stand.range.begin * size_of(precision().params)),
                                            kernel_type(precision().params), stand.range.begin,
                                            stand.range.numel().value};
      if (stand.backward) {
        gradient(stand, params);
      } else {
        check(kernels::launch_objective_loss(params, key(stand), parts().instruments.workspace(), loss(), stream),
              "launch_objective_loss");
      }
    }
    if (!stand.backward) overwrite_activations(stand);
    if (self.injected_.behind(op)) inject();
    for (const GemmCount& product : parts().stand_ins.products(op)) {
      const kernels::Gemm gemm{parts().instruments.operand(0), parts().instruments.operand(1),
                               parts().instruments.operand(2), product.size};
      for (std::int64_t i = 0; i < product.count; ++i) check(kernels::launch_gemm(gemm, stream), "launch_gemm");
    }
  }

  kernels::ObjectiveKey key(const Stand& stand) const {
    return {self.context_.seed, self.context_.step, stand.micro,
            static_cast<std::uint32_t>(parts().program.plan->rank)};
  }
  double* loss() const { return parts().instruments.loss(self.forward_of_op_[op]); }

  void gradient(const Stand& stand, const kernels::ObjectiveParams& params) const {
    const Program& program = parts().program;
    const kernels::ObjectiveGrads grads{at(program.grads, params.begin * size_of(precision().grads)),
                                        kernel_type(precision().grads),
                                        program.gradient_scale * self.context_.loss_scale, true};
    check(kernels::launch_objective_gradient(params, key(stand), grads, stream), "launch_objective_gradient");
  }

  /// Quantised parameters: their values piece by piece, forward from rows, backward from columns where they are alive.
  void on_values(const Stand& stand) const {
    const Program& program = parts().program;
    const Instruments& instruments = parts().instruments;
    const BufferId columns = program.quantized->columns;
    const bool from_columns = stand.backward && columns.valid() && parts().memory.at(columns) != nullptr;
    auto* tiles = static_cast<double*>(instruments.workspace());
    const std::int64_t most = kValuesAtOnce.value;
    for (std::int64_t begin = stand.range.begin; begin < stand.range.end;) {
      const ElementRange piece{begin, std::min(stand.range.end, (begin / most + 1) * most)};
      issue_dequantized_values(program, piece, from_columns, addresses(), instruments.values(), stream);
      const kernels::ObjectiveParams params{instruments.values(), kernels::Type::fp32, piece.begin,
                                            piece.numel().value};
      if (stand.backward) {
        gradient(stand, params);
      } else {
        check(kernels::launch_objective_tiles(params, key(stand), tiles, stream), "launch_objective_tiles");
        tiles += kernels::objective_workspace(piece.begin, piece.numel().value) / std::int64_t{sizeof(double)};
      }
      begin = piece.end;
    }
    if (stand.backward) return;
    auto* const first = static_cast<double*>(instruments.workspace());
    check(kernels::launch_objective_total(first, tiles - first, loss(), stream), "launch_objective_total");
  }

  void inject() const {
    const InjectedValue& value = self.injected_;
    check(cudaMemcpyAsync(at(parts().program.grads, value.at().value), value.host(),
                          static_cast<std::size_t>(value.bytes().value), cudaMemcpyHostToDevice, cuda()),
          "cudaMemcpyAsync");
  }

  /// Real writes all over the buffer: what is wrongly still there afterwards is poison.
  void overwrite_activations(const Stand& stand) const {
    if (!stand.activations.valid()) return;
    const Bytes whole = parts().program.plan->buffers[stand.activations.index].bytes;
    const ByteRange share = overwritten(stand, whole, parts().program.padded);
    if (share.bytes.value == 0) return;
    check(cudaMemsetAsync(at(stand.activations, share.at.value), kernels::kPoison,
                          static_cast<std::size_t>(share.bytes.value), cuda()),
          "cudaMemsetAsync");
  }

  // Life.

  std::function<void*(BufferId)> addresses() const {
    return [this](BufferId buffer) -> void* { return at(buffer); };
  }
  HostParts host() const { return {parts().store.pinned(), parts().store.pageable()}; }

  void operator()(const Zero& zero) const {
    for (const Zero::Part& part : zero.parts) {
      check(cudaMemsetAsync(at(zero.buffer, part.at.value), 0, static_cast<std::size_t>(part.bytes.value), cuda()),
            "cudaMemsetAsync");
    }
  }
  void operator()(const HostMasters& masters) const {
    make_host_masters(parts().pool, masters, precision().params, parts().options.training.seed, parts().store.pinned());
  }
  void operator()(const Store& store) const {
    EBB_ASSERT(parts().checkpoint != nullptr);
    parts().checkpoint->store(store, host());
  }
  void operator()(const Fetch& fetch) const {
    EBB_ASSERT(parts().checkpoint != nullptr);
    parts().checkpoint->fetch(fetch, host());
  }
  void operator()(const FindLargest& find) const { issue_find_largest(parts().program, find, addresses(), stream); }
  void operator()(const Quantize& quantize) const { issue_quantize(parts().program, quantize, addresses(), stream); }
  void operator()(const Dequantize& values) const { issue_dequantize(parts().program, values, addresses(), stream); }
  void operator()(const MakeColumns& make) const { issue_make_columns(parts().program, make, addresses(), stream); }

  /// A framework's host time: the thread is busy, as Python would be.
  void operator()(const HostWork& work) const {
    if (!parts().options.framework_time) return;
    const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(work.duration.value / 1000);
    while (std::chrono::steady_clock::now() < end) {
    }
  }
};

Issuer::Issuer(const IssuerParts& parts) : parts_(parts), forward_of_op_(parts.actions.size(), 0) {
  std::uint32_t forwards = 0;
  for (std::size_t op = 0; op < parts.actions.size(); ++op) {
    const auto* stand = std::get_if<Stand>(&parts.actions[op]);
    if (stand != nullptr && !stand->backward && !stand->fills()) forward_of_op_[op] = forwards++;
    has_clip_ = has_clip_ || std::holds_alternative<ReadyClip>(parts.actions[op]);
  }
  if (!parts.options.training.injections.empty()) injected_ = InjectedValue(parts.program, parts.actions);
}

void Issuer::begin_step(const StepContext& context) {
  context_ = context;
  host_digest_ = 0;
  injected_.set(context.inject);
}

void Issuer::issue(std::uint32_t op, void* stream) { std::visit(Issue{*this, op, stream}, parts_.actions[op]); }

}  // namespace ebb::replay
