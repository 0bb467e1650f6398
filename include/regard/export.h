// Marks what the shared library shows to its users. Everything else is hidden.
#pragma once

#define REGARD_API __attribute__((visibility("default")))
