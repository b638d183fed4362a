/*
 * The limit of the machine: processes that pass a message of 32 bytes to each other over UNIX sockets. They only sleep
 * in poll, read and write.
 *
 *     floor SECONDS        round trips between two processes, then with a third one between them, a line of JSON each
 *
 * A read between a host and a controller takes at least as long as the first. A read between two hosts on a controller
 * takes at least as long as the second.
 */
#define _GNU_SOURCE
#include "csupport.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LENGTH = 32 };

static void take(int from)
{
    char message[LENGTH];
    struct pollfd entry = { .fd = from, .events = POLLIN };
    if (poll(&entry, 1, -1) < 0)
        fail("poll");
    ssize_t count = recv(from, message, sizeof(message), 0);
    if (count < 0)
        fail("recv");
    if (count == 0)
        exit(0);
}

static void give(int to)
{
    static const char message[LENGTH];
    if (send(to, message, sizeof(message), MSG_NOSIGNAL) < 0)
        exit(0);
}

/* Forwards messages from `near` to `far`, then back. Both are the same if there is no process behind this one. */
static pid_t start(int near, int far)
{
    pid_t process = fork();
    if (process < 0)
        fail("fork");
    if (process > 0)
        return process;
    for (;;) {
        take(near);
        if (far >= 0) {
            give(far);
            take(far);
        }
        give(near);
    }
}

static void measure(int fd, double seconds)
{
    static struct durations durations;
    uint64_t began;
    durations_begin(&durations, seconds);
    do {
        began = now();
        give(fd);
        take(fd);
    } while (durations_note(&durations, began));
    durations_print(&durations);
}

static void pair(int ends[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        fail("socketpair");
}

int main(int count, char **arguments)
{
    double seconds = count > 1 ? atof(arguments[1]) : 1;
    int near[2], far[2];
    pair(near);
    pid_t answers = start(near[1], -1);
    measure(near[0], seconds);
    kill(answers, SIGKILL);

    pair(near);
    pair(far);
    pid_t between = start(near[1], far[0]);
    answers = start(far[1], -1);
    measure(near[0], seconds);
    kill(between, SIGKILL);
    kill(answers, SIGKILL);
    return 0;
}
