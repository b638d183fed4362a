/* Functions shared by the C benchmark programs: time, little-endian numbers, durations, commands and sockets. */
#ifndef CSUPPORT_H
#define CSUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Prints the error of the last system call, and ends the program. */
_Noreturn void fail(const char *what);

/* The monotonic time, in nanoseconds. */
uint64_t now(void);

static inline uint16_t get(const uint8_t *bytes) { return (uint16_t)(bytes[0] | bytes[1] << 8); }

static inline void put(uint8_t *bytes, uint16_t value)
{
    bytes[0] = value & 0xFF;
    bytes[1] = value >> 8;
}

/* A number of operations, and the duration of each. */
struct durations {
    uint64_t start, end, operations;
    /* The number of operations by duration, in tenths of a microsecond. */
    uint32_t counts[1 << 16];
};

/* Starts a measurement of `seconds` seconds. */
void durations_begin(struct durations *durations, double seconds);

/* Counts an operation that began at some time and has just ended. Returns false if the time is over. */
bool durations_note(struct durations *durations, uint64_t began);

/* Prints a line of JSON: the number of operations, the seconds they took, and quantiles of their durations. */
void durations_print(const struct durations *durations);

/* A socket that listens at `unix:PATH`, a path, or `tcp:HOST:PORT` (IPv4). */
int listen_at(const char *address);

/* A connected socket that does not block. */
int connect_to(const char *address);

/* Reads the lines that wait on standard input, and calls `obey` for each. Ends the program at the end of the input. */
void obey_input(void (*obey)(const char *verb, double seconds));

#endif
