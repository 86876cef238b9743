#include "planner/accesses.hpp"

#include "models/errors.hpp"

namespace ebb {

namespace {

void touch(Accesses& accesses, Side side, unsigned states, bool write) {
  if (states == 0) return;
  EBB_ASSERT(accesses.content_count < accesses.content.size());
  accesses.content[accesses.content_count++] = {side, static_cast<std::uint8_t>(states), write};
}

void use_storage(Accesses& accesses, const Op& op, bool write) {
  accesses.storage = op.buffer.valid();
  accesses.storage_write = write;
}

void kernel_accesses(const Op& op, Accesses& accesses) {
  switch (op.work) {
    case Work::adam:
    case Work::adam_foreach:
      touch(accesses, Side::device, op.states & kGrads, false);
      touch(accesses, Side::device, op.states & (kAllState | kParams), true);
      return use_storage(accesses, op, true);
    case Work::cast:
      if (op.states & kGrads) {  // an fp32 copy of gradients
        touch(accesses, Side::device, kGrads, false);
        return use_storage(accesses, op, true);
      }
      touch(accesses, Side::device, op.states & kAllState, false);
      touch(accesses, Side::device, op.states & kParams, true);
      return use_storage(accesses, op, false);
    case Work::grad_norm:
      touch(accesses, Side::device, op.states, false);
      return use_storage(accesses, op, true);
    case Work::clip:  // reads the norm
      touch(accesses, Side::device, op.states, true);
      return use_storage(accesses, op, false);
    case Work::make_masters:
      touch(accesses, Side::device, op.states & kParams, false);
      touch(accesses, Side::device, op.states & kMaster, true);
      return use_storage(accesses, op, true);
    case Work::make_columns:
      accesses.counting = Counting::padded;
      [[fallthrough]];
    case Work::find_largest:
    case Work::dequantize:  // into storage of their own
      touch(accesses, Side::device, op.states, false);
      return use_storage(accesses, op, true);
    case Work::quantize:
      touch(accesses, Side::device, op.states & kAllState, false);
      touch(accesses, Side::device, op.states & kParams, true);
      return use_storage(accesses, op, true);
    default:
      touch(accesses, Side::device, op.states, true);
      return use_storage(accesses, op, true);
  }
}

/// With `host_buffer` the other side is that buffer; else the host's own copy of the state.
void copy_accesses(const Op& op, Accesses& accesses) {
  const bool in = op.kind == OpKind::copy_h2d;
  unsigned on_device = op.states;
  if (!op.host_buffer.valid()) {
    touch(accesses, Side::host, op.states, !in);
    // Others pass through staging storage only.
    if (in || op.buffer.valid()) on_device &= kAllState;
  }
  touch(accesses, Side::device, on_device, in);
  accesses.host_storage_write = !in;
  use_storage(accesses, op, in);
}

void host_accesses(const Op& op, Accesses& accesses) {
  use_storage(accesses, op, false);
  if (op.work == Work::store || op.work == Work::fetch) {
    accesses.host_storage_write = op.work == Work::fetch;
    if (!op.host_buffer.valid()) touch(accesses, Side::host, op.states, op.work == Work::fetch);
    return;
  }
  accesses.host_storage_write = true;
  touch(accesses, Side::host, op.states & kGrads, false);
  if (!op.host_buffer.valid()) touch(accesses, Side::host, op.states & (kAllState | kParams), true);
}

}  // namespace

Accesses accesses_of(const Op& op) {
  Accesses accesses;
  switch (op.kind) {
    case OpKind::allocate:
    case OpKind::release:
      break;
    case OpKind::copy_h2d:
    case OpKind::copy_d2h:
      copy_accesses(op, accesses);
      break;
    case OpKind::kernel:
      kernel_accesses(op, accesses);
      break;
    case OpKind::collective:
      accesses.counting = Counting::padded;
      touch(accesses, Side::device, op.states, true);
      use_storage(accesses, op, true);
      break;
    case OpKind::compute:
      accesses.counting = Counting::padded;
      touch(accesses, Side::device, op.states & kParams, false);
      touch(accesses, Side::device, op.states & kGrads, true);
      use_storage(accesses, op, true);
      break;
    case OpKind::host_work:
      host_accesses(op, accesses);
      break;
    case OpKind::host_wait:
      use_storage(accesses, op, false);
      break;
  }
  return accesses;
}

}  // namespace ebb
