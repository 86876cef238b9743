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
    default:
      touch(accesses, Side::device, op.states, true);
      return use_storage(accesses, op, true);
  }
}

}  // namespace

Accesses accesses_of(const Op& op) {
  Accesses accesses;
  switch (op.kind) {
    case OpKind::allocate:
    case OpKind::release:
      break;
    case OpKind::copy_h2d:
      touch(accesses, Side::host, op.states, false);
      touch(accesses, Side::device, op.states & kAllState, true);  // others arrive in staging storage only
      use_storage(accesses, op, true);
      break;
    case OpKind::copy_d2h:
      touch(accesses, Side::host, op.states, true);
      touch(accesses, Side::device, op.buffer.valid() ? op.states & kAllState : op.states, false);
      use_storage(accesses, op, false);
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
      touch(accesses, Side::host, op.states & kGrads, false);
      touch(accesses, Side::host, op.states & (kAllState | kParams), true);
      break;
    case OpKind::host_wait:
      use_storage(accesses, op, false);
      break;
  }
  return accesses;
}

}  // namespace ebb
