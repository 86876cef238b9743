#include "models/plan.hpp"

namespace ebb {

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::init:
      return "init";
    case Phase::load:
      return "load";
    case Phase::first_step:
      return "first-step";
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::finalize:
      return "finalize";
    case Phase::step:
      return "step";
    case Phase::gather:
      return "gather";
    case Phase::save:
      return "save";
    case Phase::skip:
      return "skip";
  }
  return "";
}

std::string_view name_of(LifePart part) {
  switch (part) {
    case LifePart::step:
      return "step";
    case LifePart::init:
      return "init";
    case LifePart::load:
      return "load";
    case LifePart::load_params:
      return "load-params";
    case LifePart::reload:
      return "reload";
    case LifePart::first_step:
      return "first-step";
    case LifePart::first_skip:
      return "first-skip";
    case LifePart::skip:
      return "skip";
    case LifePart::save:
      return "save";
  }
  return "";
}

std::string_view name_of(Memory memory) {
  switch (memory) {
    case Memory::device:
      return "device";
    case Memory::pinned:
      return "pinned";
    case Memory::pageable:
      return "pageable";
  }
  return "";
}

std::string_view name_of(Role role) {
  switch (role) {
    case Role::other:
      return "other";
    case Role::params:
      return "params";
    case Role::grads:
      return "grads";
    case Role::grad_copies:
      return "grad-copies";
    case Role::state:
      return "state";
    case Role::norm:
      return "norm";
    case Role::staging:
      return "staging";
    case Role::checkpoint:
      return "checkpoint";
    case Role::scales:
      return "scales";
    case Role::columns:
      return "columns";
    case Role::largest:
      return "largest";
  }
  return "";
}

std::string_view name_of(StreamKind kind) {
  switch (kind) {
    case StreamKind::host:
      return "host";
    case StreamKind::compute:
      return "compute";
    case StreamKind::h2d:
      return "h2d";
    case StreamKind::d2h:
      return "d2h";
    case StreamKind::comm:
      return "comm";
  }
  return "";
}

std::string_view name_of(OpKind kind) {
  switch (kind) {
    case OpKind::allocate:
      return "allocate";
    case OpKind::release:
      return "release";
    case OpKind::copy_h2d:
      return "copy-h2d";
    case OpKind::copy_d2h:
      return "copy-d2h";
    case OpKind::kernel:
      return "kernel";
    case OpKind::collective:
      return "collective";
    case OpKind::compute:
      return "compute";
    case OpKind::host_work:
      return "host-work";
    case OpKind::host_wait:
      return "host-wait";
  }
  return "";
}

std::string_view name_of(Work work) {
  switch (work) {
    case Work::none:
      return "none";
    case Work::adam:
      return "adam";
    case Work::adam_foreach:
      return "adam-foreach";
    case Work::cast:
      return "cast";
    case Work::grad_norm:
      return "grad-norm";
    case Work::clip:
      return "clip";
    case Work::zero_grads:
      return "zero-grads";
    case Work::all_gather:
      return "all-gather";
    case Work::reduce_scatter:
      return "reduce-scatter";
    case Work::all_reduce:
      return "all-reduce";
    case Work::all_to_all:
      return "all-to-all";
    case Work::chunk_overhead:
      return "chunk-overhead";
    case Work::tensor_scan:
      return "tensor-scan";
    case Work::launch:
      return "launch";
    case Work::cpu_adam:
      return "cpu-adam";
    case Work::pin:
      return "pin";
    case Work::zero_state:
      return "zero-state";
    case Work::make_masters:
      return "make-masters";
    case Work::find_largest:
      return "find-largest";
    case Work::quantize:
      return "quantize";
    case Work::dequantize:
      return "dequantize";
    case Work::make_columns:
      return "make-columns";
    case Work::store:
      return "store";
    case Work::fetch:
      return "fetch";
  }
  return "";
}

}  // namespace ebb
