// How often this program has asked the heap for memory (operator new).
#pragma once

long allocations();
