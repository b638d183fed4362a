#include "Rules.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "CFaultInjection.h"

/* A fault is added once and never freed or changed, so that calls read the lists without a lock. */
struct fault {
    struct fault *next;
    const void *thread;
    int outcome;
    long value;
    long skipped;
    long count;
    int descriptor;
    char text[256];
    int call;
    atomic_long matches;
    atomic_int is_active;
};

static _Atomic(struct fault *) faults[call_count];
static atomic_int active[call_count];
/* The number of active faults that are confined to a descriptor. */
static atomic_int confined;

enum { noted_limit = 256 };

static _Thread_local struct {
    int is_noting;
    int count;
    int descriptors[noted_limit];
} notes;

static const char *const names[call_count] = {
#define X(name) [call_##name] = #name,
    CALLS(X)
#undef X
};

int fault_call_number(const char *name)
{
    for (int call = 0; call < call_count; call++)
        if (strcmp(names[call], name) == 0)
            return call;
    return -1;
}

struct fault *fault_add(
    int call, enum fault_outcome outcome, long value, long skipped, long count, int is_any_thread, int descriptor,
    const char *text)
{
    struct fault *fault = calloc(1, sizeof(*fault));
    if (!fault || strlen(text) >= sizeof(fault->text))
        abort();
    fault->call = call;
    fault->outcome = outcome;
    fault->value = value;
    fault->skipped = skipped;
    fault->count = count;
    fault->thread = is_any_thread ? NULL : &notes;
    fault->descriptor = descriptor;
    strcpy(fault->text, text);
    atomic_init(&fault->is_active, 1);
    fault->next = atomic_load(&faults[call]);
    while (!atomic_compare_exchange_weak(&faults[call], &fault->next, fault)) {}
    atomic_fetch_add(&active[call], 1);
    if (descriptor >= 0)
        atomic_fetch_add(&confined, 1);
    return fault;
}

void end_faults_of(int descriptor)
{
    if (descriptor < 0 || atomic_load_explicit(&confined, memory_order_relaxed) == 0)
        return;
    for (int call = 0; call < call_count; call++)
        for (struct fault *fault = atomic_load(&faults[call]); fault; fault = fault->next)
            if (fault->descriptor == descriptor)
                fault_end(fault);
}

long fault_uses(struct fault *fault)
{
    long uses = atomic_load(&fault->matches) - fault->skipped;
    return uses < 0 ? 0 : uses < fault->count ? uses : fault->count;
}

long fault_end(struct fault *fault)
{
    if (atomic_exchange(&fault->is_active, 0)) {
        atomic_fetch_sub(&active[fault->call], 1);
        if (fault->descriptor >= 0)
            atomic_fetch_sub(&confined, 1);
    }
    return fault_uses(fault);
}

/* Whether the path of a descriptor has a text. */
static int descriptor_has(int descriptor, const char *text)
{
    char link[64];
    char path[512];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof(path) - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return strstr(path, text) != NULL;
}

static int matches(const struct fault *fault, int descriptor, const char *text, const char *other)
{
    if (fault->thread && fault->thread != &notes)
        return 0;
    if (fault->descriptor >= 0 && fault->descriptor != descriptor)
        return 0;
    if (!fault->text[0])
        return 1;
    return (text && strstr(text, fault->text)) || (other && strstr(other, fault->text))
        || (!text && descriptor >= 0 && descriptor_has(descriptor, fault->text));
}

struct decision decide(enum call call, int descriptor, const char *text, const char *other)
{
    struct decision decision = { 0, 0, 0 };
    if (atomic_load_explicit(&active[call], memory_order_relaxed) == 0)
        return decision;
    int error = errno;
    for (struct fault *fault = atomic_load(&faults[call]); fault; fault = fault->next) {
        if (!atomic_load(&fault->is_active) || !matches(fault, descriptor, text, other))
            continue;
        long turn = atomic_fetch_add(&fault->matches, 1);
        if (turn < fault->skipped || turn - fault->skipped >= fault->count)
            continue;
        decision = (struct decision) { 1, fault->outcome, fault->value };
        break;
    }
    errno = error;
    return decision;
}

void fault_begin_descriptors(void)
{
    notes.is_noting = 1;
    notes.count = 0;
}

int fault_end_descriptors(void)
{
    notes.is_noting = 0;
    return notes.count;
}

void note_open(int descriptor)
{
    if (!notes.is_noting || descriptor < 0)
        return;
    if (notes.count == noted_limit)
        abort();
    notes.descriptors[notes.count++] = descriptor;
}

void note_close(int descriptor)
{
    if (!notes.is_noting)
        return;
    for (int index = 0; index < notes.count; index++)
        if (notes.descriptors[index] == descriptor) {
            notes.descriptors[index] = notes.descriptors[--notes.count];
            return;
        }
}
