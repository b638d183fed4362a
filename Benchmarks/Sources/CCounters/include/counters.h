#ifndef COUNTERS_H
#define COUNTERS_H

#include <stddef.h>
#include <stdint.h>

/// The allocations of malloc and related functions on all threads since the start of counting.
struct allocation_counts {
    uint64_t allocations;
    uint64_t bytes;
};

/// Sets the counts to zero and starts counting.
void allocation_counting_begin(void);

/// Stops counting and returns the counts.
struct allocation_counts allocation_counting_end(void);

/// How many bytes of the heap are in use, as the allocator rounds them.
uint64_t heap_bytes_in_use(void);

/// Begins to count instructions, where the process runs in callgrind.
void instruction_counting_begin(void);

/// Writes what was counted to callgrind's file, under a name.
void instruction_counting_end(const char *name);

/// Whether the process runs in callgrind.
int is_counting_instructions(void);

/// Nanoseconds of a clock that only moves forward.
uint64_t monotonic_nanoseconds(void);

/// Keeps the compiler from leaving out what makes `value`.
void keep(uint64_t value);

#endif
