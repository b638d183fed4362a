#ifndef CFAULTINJECTION_H
#define CFAULTINJECTION_H

/* Faults in the system calls of this process. FaultInjection is the Swift interface. */

/* How a fault changes a call. */
enum fault_outcome {
    /* It fails with an errno. Only `close` and `closedir` still do their work, so that no descriptor leaks. */
    fault_fails,
    /* It returns a number and does nothing. */
    fault_returns,
    /* It transfers at most this many bytes. */
    fault_shortens,
    /* The realtime clock is ahead by this many seconds. */
    fault_shifts,
};

struct fault;

/* The number of a call, or -1 if it is not interposed. */
int fault_call_number(const char *name);

/*
 * Makes a call fail from now on. The first `skipped` calls that match are spared, and the `count` calls after them fail.
 * A call matches if it is on this thread (unless `is_any_thread`), on this descriptor (unless it is negative), and
 * has this text in its path or in the path of its descriptor (unless it is empty). A fault on a
 * descriptor ends when that descriptor is closed.
 */
struct fault *fault_add(
    int call, enum fault_outcome outcome, long value, long skipped, long count, int is_any_thread, int descriptor,
    const char *text);

/* Ends a fault. Returns the number of calls that it changed. The fault stays in memory, because other threads may read it. */
long fault_end(struct fault *fault);

/* The number of calls that a fault has changed. */
long fault_uses(struct fault *fault);

/* Notes the descriptors that this thread opens and closes. */
void fault_begin_descriptors(void);

/* Ends the notes. Returns the number of descriptors that this thread has opened and not closed. */
int fault_end_descriptors(void);

#endif
