// SIGINT, SIGTERM and SIGHUP: what is being written goes (checkpoint/unfinished.hpp), and the process ends with 128
// plus the signal's number, as a shell would say. A second signal ends it at once. A file that passes the limit on its
// size (SIGXFSZ) becomes a failed write, which is reported like any other.
#pragma once

namespace ebb::replay {

/// From now on. Signals that are ignored when it is called, as nohup does, stay so. Once, early in main().
void watch_interrupts();

}  // namespace ebb::replay
