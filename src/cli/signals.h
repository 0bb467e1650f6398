// Ctrl-C and SIGTERM. The program, not the library, owns them: they are blocked before the first thread starts, so no
// computation is ever interrupted half-way, and one thread waits for them.
#pragma once

#include <stop_token>

namespace regard::cli {

// To be called once, before any thread starts. The token is asked to stop by the first signal; a second signal ends the
// process at once, with the status that a shell gives to one ended by the first (130 for Ctrl-C).
std::stop_token stop_on_signals();

int signal_received();  // the number of the first signal; 0 if none came

}  // namespace regard::cli
