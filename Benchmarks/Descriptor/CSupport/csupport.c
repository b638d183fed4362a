#define _GNU_SOURCE
#include "csupport.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

void fail(const char *what)
{
    perror(what);
    exit(1);
}

uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Durations */

enum { LAST_DURATION = (1 << 16) - 1 };

void durations_begin(struct durations *durations, double seconds)
{
    memset(durations, 0, sizeof(*durations));
    durations->start = now();
    durations->end = durations->start + (uint64_t)(seconds * 1e9);
}

bool durations_note(struct durations *durations, uint64_t began)
{
    uint64_t time = now(), tenths = (time - began) / 100;
    durations->counts[tenths < LAST_DURATION ? tenths : LAST_DURATION]++;
    durations->operations++;
    return time < durations->end;
}

static double quantile(const struct durations *durations, double part)
{
    uint64_t sum = 0, wanted = (uint64_t)((double)durations->operations * part);
    for (size_t tenths = 0; tenths <= LAST_DURATION; tenths++)
        if ((sum += durations->counts[tenths]) > wanted)
            return (double)tenths / 10;
    return 0;
}

void durations_print(const struct durations *durations)
{
    printf("{\"operations\": %llu, \"seconds\": %.4f, \"p50\": %.1f, \"p99\": %.1f}\n",
        (unsigned long long)durations->operations, (double)(now() - durations->start) / 1e9, quantile(durations, 0.5),
        quantile(durations, 0.99));
    fflush(stdout);
}

/* Sockets */

union address {
    struct sockaddr any;
    struct sockaddr_un local;
    struct sockaddr_in internet;
};

/* Parses an address. Returns its length. */
static socklen_t parse(const char *text, union address *address)
{
    memset(address, 0, sizeof(*address));
    if (!strncmp(text, "tcp:", 4)) {
        char host[64];
        unsigned port;
        if (sscanf(text + 4, "%63[^:]:%u", host, &port) == 2 && port <= 0xFFFF
            && inet_pton(AF_INET, host, &address->internet.sin_addr) == 1) {
            address->internet.sin_family = AF_INET;
            address->internet.sin_port = htons((uint16_t)port);
            return sizeof(address->internet);
        }
    } else {
        const char *path = strncmp(text, "unix:", 5) ? text : text + 5;
        if (strlen(path) < sizeof(address->local.sun_path)) {
            address->local.sun_family = AF_UNIX;
            strcpy(address->local.sun_path, path);
            return sizeof(address->local);
        }
    }
    fprintf(stderr, "no address: %s (expected unix:PATH or tcp:HOST:PORT)\n", text);
    exit(2);
}

int listen_at(const char *text)
{
    union address address;
    socklen_t length = parse(text, &address);
    int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0)
        fail("socket");
    if (address.any.sa_family == AF_UNIX)
        unlink(address.local.sun_path);
    else
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, &address.any, length) < 0 || listen(fd, 2) < 0)
        fail(text);
    return fd;
}

int connect_to(const char *text)
{
    union address address;
    socklen_t length = parse(text, &address);
    int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0 || connect(fd, &address.any, length) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        fail(text);
    if (address.any.sa_family == AF_INET)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

/* Commands */

void obey_input(void (*obey)(const char *verb, double seconds))
{
    static char line[256];
    static size_t length;
    ssize_t count = read(STDIN_FILENO, line + length, sizeof(line) - 1 - length);
    if (count <= 0)
        exit(0);
    length += (size_t)count;
    line[length] = 0;
    char *end;
    while ((end = strchr(line, '\n'))) {
        char verb[32] = "";
        double seconds = 0;
        *end = 0;
        sscanf(line, "%31s %lf", verb, &seconds);
        obey(verb, seconds);
        length -= (size_t)(end + 1 - line);
        memmove(line, end + 1, length + 1);
    }
}
