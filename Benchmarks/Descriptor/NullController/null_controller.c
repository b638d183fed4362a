/*
 * A controller without a radio, for measuring hosts: it accepts each ACL packet, completes it and forwards it at once.
 *
 *     null-controller relay ADDRESS       two hosts on one socket (H4: unix:PATH or tcp:HOST:PORT), linked with each other
 *     null-controller client ADDRESS      one host, a server; this program is the client at the other end of its link
 *     null-controller server ADDRESS      one host, a client; this program is the server at the other end of its link
 *     null-controller reports ADDRESS RATE [bthome|FILE]   one host, which scans: RATE advertising reports per second, of
 *                                                     devices in general, of sensors, or those in FILE, each once: lines
 *                                                     of an address (least significant byte first) and AD structures,
 *                                                     in hexadecimal digits
 *
 * As the client, it reports when its host advertises. As client or server, it reads commands from standard input and
 * answers each with a line of JSON:
 *
 *     discover                            as the client: the handles of the server's values
 *     reads S | writes S | commands S     as the client: requests, or Write Commands of 244 bytes, for S seconds
 *     subscribe                           as the client: subscribes to the host's notifications
 *     notifications S                     as the server: notifications of 244 bytes at full rate, for S seconds
 *     count                               PDUs received since the last `count`
 *
 * The program has one thread, which sleeps in poll while there is no work.
 */
#define _GNU_SOURCE
#include "csupport.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { ACL_LENGTH = 251, ACL_COUNT = 32, HANDLE = 0x40, VALUE_LENGTH = 244, MTU = 247 };
/* The number of waiting bytes for a host from which its peer's packets are no longer completed. */
enum { BACKLOG_LIMIT = 64 << 10 };

struct host {
    int fd;
    uint8_t in[1 << 16];
    size_t in_length;
    uint8_t *out;
    size_t out_start, out_end, out_capacity;
    /* Packets of this host that were not written to its peer yet. */
    unsigned uncompleted;
    bool advertises, initiates, scans, linked;
};

static enum { RELAY, CLIENT, SERVER, REPORTS } mode;
static struct host hosts[2];
static int host_count;
static unsigned rate;
/* Whether the reports are of sensors in the BTHome format. */
static bool sensors;

/* The output to a host: collected during a turn of the loop, and written at once at its end. */

static size_t backlog(const struct host *host) { return host->out_end - host->out_start; }

static uint8_t *room(struct host *host, size_t count)
{
    if (host->out_start == host->out_end)
        host->out_start = host->out_end = 0;
    if (host->out_end + count > host->out_capacity) {
        memmove(host->out, host->out + host->out_start, backlog(host));
        host->out_end -= host->out_start;
        host->out_start = 0;
        while (host->out_end + count > host->out_capacity)
            host->out_capacity = host->out_capacity ? host->out_capacity * 2 : 1 << 17;
        if (!(host->out = realloc(host->out, host->out_capacity)))
            fail("realloc");
    }
    host->out_end += count;
    return host->out + host->out_end - count;
}

static void flush(struct host *host)
{
    while (backlog(host) > 0) {
        ssize_t count = send(host->fd, host->out + host->out_start, backlog(host), MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            if (errno == EAGAIN)
                return;
            exit(0);
        }
        host->out_start += (size_t)count;
    }
}

static void event(struct host *host, uint8_t code, const void *parameters, size_t length)
{
    uint8_t *bytes = room(host, 3 + length);
    bytes[0] = 4;
    bytes[1] = code;
    bytes[2] = (uint8_t)length;
    memcpy(bytes + 3, parameters, length);
}

static void complete(struct host *host, uint16_t opcode, const void *values, size_t length)
{
    uint8_t parameters[80] = { 1, opcode & 0xFF, opcode >> 8, 0 };
    memcpy(parameters + 4, values, length);
    event(host, 0x0E, parameters, 4 + length);
}

static void command_status(struct host *host, uint16_t opcode)
{
    event(host, 0x0F, (uint8_t[]){ 0, 1, opcode & 0xFF, opcode >> 8 }, 4);
}

static void completed_packets(struct host *host, unsigned count)
{
    if (count > 0)
        event(host, 0x13, (uint8_t[]){ 1, HANDLE, 0, (uint8_t)count, (uint8_t)(count >> 8) }, 5);
}

/* One L2CAP frame of the attribute channel. */
static uint8_t *attribute(struct host *host, size_t length)
{
    uint8_t *bytes = room(host, 9 + length);
    uint8_t header[9] = {
        2, HANDLE, 0x20, (uint8_t)(length + 4), (uint8_t)((length + 4) >> 8), (uint8_t)length, (uint8_t)(length >> 8), 4, 0
    };
    memcpy(bytes, header, 9);
    return bytes + 9;
}

/* The link */

static void connected(struct host *host, uint8_t role, uint8_t peer)
{
    host->linked = true;
    event(host, 0x3E,
          (uint8_t[]){ 1, 0, HANDLE, 0, role, 0, peer, 0, 0, 0x4C, 0x55, 0x4E, 6, 0, 0, 0, 0x2C, 1, 0 }, 19);
}

static void link_hosts(void)
{
    if (mode == CLIENT && hosts[0].advertises && !hosts[0].linked)
        connected(&hosts[0], 1, 2);
    if (mode == SERVER && hosts[0].initiates && !hosts[0].linked)
        connected(&hosts[0], 0, 2);
    if (mode != RELAY || host_count < 2 || hosts[0].linked)
        return;
    for (int i = 0; i < 2; i++)
        if (hosts[i].initiates && hosts[1 - i].advertises) {
            connected(&hosts[i], 0, (uint8_t)(2 - i));
            connected(&hosts[1 - i], 1, (uint8_t)(i + 1));
            return;
        }
}

/* Commands */

static void answer(struct host *host, uint16_t opcode, const uint8_t *parameters)
{
    uint8_t number = (uint8_t)(host - hosts + 1);
    uint8_t values[64] = { 0 };
    switch (opcode) {
    case 0x0406: /* Disconnect */
        command_status(host, opcode);
        for (int i = 0; i < host_count; i++) {
            event(&hosts[i], 0x05, (uint8_t[]){ 0, HANDLE, 0, &hosts[i] == host ? 0x16 : 0x13 }, 4);
            hosts[i].linked = hosts[i].initiates = hosts[i].advertises = false;
        }
        return;
    case 0x1001: /* Read Local Version Information */
        return complete(host, opcode, (uint8_t[]){ 0x0D, 0, 0, 0x0D, 0xFF, 0xFF, 0, 0 }, 8);
    case 0x1002: /* Read Local Supported Commands: what LE needs at least */
        values[0] = 0x20;
        values[5] = 0xC0;
        values[14] = 0xA8;
        values[15] = 0x02;
        values[25] = 0xF7;
        values[26] = 0xFF;
        values[27] = 0xA7;
        values[28] = 0x0B;
        return complete(host, opcode, values, 64);
    case 0x1003: /* Read Local Supported Features: no BR/EDR */
        values[4] = 0x60;
        return complete(host, opcode, values, 8);
    case 0x1009: /* Read BD_ADDR */
        return complete(host, opcode, (uint8_t[]){ number, 0, 0, 0x4C, 0x55, 0x4E }, 6);
    case 0x1005: /* Read Buffer Size */
        return complete(host, opcode, (uint8_t[]){ ACL_LENGTH, 0, 0, ACL_COUNT, 0, 0, 0 }, 7);
    case 0x2002: /* LE Read Buffer Size */
        return complete(host, opcode, (uint8_t[]){ ACL_LENGTH, 0, ACL_COUNT }, 3);
    case 0x2003: /* LE Read Local Supported Features */
        return complete(host, opcode, values, 8);
    case 0x2007: /* LE Read Advertising Physical Channel Tx Power */
        return complete(host, opcode, values, 1);
    case 0x200F: /* LE Read Filter Accept List Size */
        return complete(host, opcode, (uint8_t[]){ 8 }, 1);
    case 0x2018: /* LE Rand */
        return complete(host, opcode, (uint8_t[]){ 1, 2, 3, 4, 5, 6, 7, number }, 8);
    case 0x201C: /* LE Read Supported States */
        memset(values, 0xFF, 8);
        return complete(host, opcode, values, 8);
    case 0x200A: /* LE Set Advertising Enable */
        host->advertises = parameters[0] == 1;
        complete(host, opcode, values, 0);
        if (mode == CLIENT && host->advertises && !host->linked) {
            puts("{\"advertising\": true}");
            fflush(stdout);
        }
        return link_hosts();
    case 0x200C: /* LE Set Scan Enable */
        host->scans = parameters[0] == 1;
        return complete(host, opcode, values, 0);
    case 0x200D: /* LE Create Connection */
        host->initiates = true;
        command_status(host, opcode);
        return link_hosts();
    case 0x200E: /* LE Create Connection Cancel */
        host->initiates = false;
        return complete(host, opcode, values, 0);
    case 0x2016: /* LE Read Remote Features */
        command_status(host, opcode);
        return event(host, 0x3E, (uint8_t[]){ 4, 0, HANDLE, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, 12);
    case 0x2013: /* LE Connection Update */
        command_status(host, opcode);
        return event(host, 0x3E, (uint8_t[]){ 3, 0, HANDLE, 0, 6, 0, 0, 0, 0x2C, 1 }, 10);
    case 0x041D: /* Read Remote Version Information */
        command_status(host, opcode);
        return event(host, 0x0C, (uint8_t[]){ 0, HANDLE, 0, 0x0D, 0xFF, 0xFF, 0, 0 }, 8);
    default:
        return complete(host, opcode, values, 0);
    }
}

/* The peer of a single measured host */

enum phase { IDLE, DISCOVERING, READING, WRITING, COMMANDING, NOTIFYING };

static enum phase phase;
static struct durations durations;
static uint64_t asked_at, received;
/* The handles of the host's values: to read, to write, and the one that it notifies. */
static uint16_t value_handles[3];
static uint16_t discovered_to;

static void finish_phase(void)
{
    durations_print(&durations);
    phase = IDLE;
}

static void ask(struct host *host)
{
    uint8_t *pdu;
    asked_at = now();
    if (phase == READING) {
        pdu = attribute(host, 3);
        pdu[0] = 0x0A;
        put(pdu + 1, value_handles[0]);
    } else {
        pdu = attribute(host, 3 + 20);
        pdu[0] = 0x12;
        put(pdu + 1, value_handles[1]);
        memset(pdu + 3, 0x55, 20);
    }
}

static void discover(struct host *host)
{
    uint8_t *pdu = attribute(host, 7);
    pdu[0] = 0x08; /* Read By Type: characteristic declarations */
    put(pdu + 1, discovered_to + 1);
    put(pdu + 3, 0xFFFF);
    put(pdu + 5, 0x2803);
}

static void note_declarations(const uint8_t *pdu, size_t length)
{
    for (size_t at = 2; pdu[1] >= 7 && at + pdu[1] <= length; at += pdu[1]) {
        discovered_to = get(pdu + at);
        uint16_t uuid = get(pdu + at + 5);
        if (pdu[1] == 7 && uuid >= 0xFFF1 && uuid <= 0xFFF3)
            value_handles[uuid - 0xFFF1] = get(pdu + at + 3);
    }
}

/* Handles a response, as the client at the other end. */
static void receive_as_client(struct host *host, const uint8_t *pdu, size_t length)
{
    switch (pdu[0]) {
    case 0x09:
        note_declarations(pdu, length);
        return discover(host);
    case 0x01: /* Error Response */
        if (phase == DISCOVERING) {
            printf("{\"handles\": [%u, %u, %u]}\n", value_handles[0], value_handles[1], value_handles[2]);
            fflush(stdout);
            phase = IDLE;
        }
        return;
    case 0x03:
        return discover(host);
    case 0x02: { /* Exchange MTU Request */
        uint8_t *response = attribute(host, 3);
        response[0] = 0x03;
        put(response + 1, MTU);
        return;
    }
    case 0x0B: /* Read Response */
    case 0x13: /* Write Response */
        if (phase == READING || phase == WRITING) {
            if (durations_note(&durations, asked_at))
                ask(host);
            else
                finish_phase();
        } else if (pdu[0] == 0x13) {
            puts("{}"); /* of the subscription */
            fflush(stdout);
        }
        return;
    }
}

static void error_response(struct host *host, uint8_t opcode, uint16_t handle, uint8_t error)
{
    uint8_t *pdu = attribute(host, 5);
    pdu[0] = 1;
    pdu[1] = opcode;
    put(pdu + 2, handle);
    pdu[4] = error;
}

/*
 * Answers a request, as the server at the other end. Its attributes: 1 service FFF0; 2, 3 characteristic FFF1, to read;
 * 4, 5 FFF2, to write; 6, 7 FFF3, which notifies; 8 the configuration of FFF3.
 */
static void receive_as_server(struct host *host, const uint8_t *pdu, size_t length)
{
    uint16_t start = length >= 3 ? get(pdu + 1) : 0, end = length >= 5 ? get(pdu + 3) : 0;
    uint8_t *response;
    switch (pdu[0]) {
    case 0x02:
        response = attribute(host, 3);
        response[0] = 0x03;
        put(response + 1, MTU);
        return;
    case 0x10: /* Read By Group Type */
        if (start > 1 || get(pdu + 5) != 0x2800)
            return error_response(host, pdu[0], start, 0x0A);
        response = attribute(host, 8);
        memcpy(response, (uint8_t[]){ 0x11, 6, 1, 0, 8, 0, 0xF0, 0xFF }, 8);
        return;
    case 0x08: { /* Read By Type */
        static const uint8_t properties[3] = { 0x02, 0x0C, 0x10 };
        uint16_t first = start <= 2 ? 2 : start <= 4 ? 4 : 6;
        if (get(pdu + 5) != 0x2803 || start > 6 || end < first)
            return error_response(host, pdu[0], start, 0x0A);
        response = attribute(host, 9);
        response[0] = 0x09;
        response[1] = 7;
        put(response + 2, first);
        response[4] = properties[first / 2 - 1];
        put(response + 5, first + 1);
        put(response + 7, (uint16_t)(0xFFF0 + first / 2));
        return;
    }
    case 0x04: /* Find Information */
        if (start > 8 || end < 8)
            return error_response(host, pdu[0], start, 0x0A);
        response = attribute(host, 6);
        memcpy(response, (uint8_t[]){ 0x05, 1, 8, 0, 0x02, 0x29 }, 6);
        return;
    case 0x0A: /* Read */
        received++;
        response = attribute(host, 21);
        response[0] = 0x0B;
        memset(response + 1, 0x55, 20);
        return;
    case 0x12: /* Write */
        received++;
        *attribute(host, 1) = 0x13;
        return;
    case 0x52: /* Write Command */
        received++;
        return;
    default:
        if (!(pdu[0] & 0x40))
            error_response(host, pdu[0], 0, 0x06);
    }
}

/* Sends Write Commands or notifications until the socket is full. The host's reading sets the rate. */
static void pour(struct host *host)
{
    while (backlog(host) < BACKLOG_LIMIT) {
        if (durations.operations % 64 == 0 && now() >= durations.end)
            return finish_phase();
        uint8_t *pdu = attribute(host, 3 + VALUE_LENGTH);
        pdu[0] = phase == COMMANDING ? 0x52 : 0x1B;
        put(pdu + 1, phase == COMMANDING ? value_handles[1] : 7);
        memset(pdu + 3, 0x55, VALUE_LENGTH);
        durations.operations++;
    }
}

static void obey(const char *verb, double seconds)
{
    struct host *host = &hosts[0];
    if (!strcmp(verb, "count")) {
        printf("{\"received\": %llu}\n", (unsigned long long)received);
        fflush(stdout);
        received = 0;
    } else if (!strcmp(verb, "discover")) {
        phase = DISCOVERING;
        discovered_to = 0;
        uint8_t *pdu = attribute(host, 3);
        pdu[0] = 0x02;
        put(pdu + 1, MTU);
    } else if (!strcmp(verb, "reads") || !strcmp(verb, "writes")) {
        durations_begin(&durations, seconds);
        phase = verb[0] == 'r' ? READING : WRITING;
        ask(host);
    } else if (!strcmp(verb, "commands") || !strcmp(verb, "notifications")) {
        durations_begin(&durations, seconds);
        phase = verb[0] == 'c' ? COMMANDING : NOTIFYING;
    } else if (!strcmp(verb, "subscribe")) {
        uint8_t *pdu = attribute(host, 5);
        pdu[0] = 0x12;
        put(pdu + 1, value_handles[2] + 1);
        put(pdu + 3, 1);
    }
}

/* Packets from a host */

static void receive_acl(struct host *host, const uint8_t *packet, size_t length)
{
    if (mode == RELAY) {
        struct host *peer = &hosts[host == hosts];
        uint8_t *bytes = room(peer, length);
        memcpy(bytes, packet, length);
        bytes[2] = (uint8_t)((packet[2] & 0xCF) | ((packet[2] & 0x30) == 0 ? 0x20 : packet[2] & 0x30));
        host->uncompleted++;
        return;
    }
    completed_packets(host, 1);
    if (length < 10 || get(packet + 7) != 4)
        return;
    const uint8_t *pdu = packet + 9;
    if (pdu[0] == 0x1B)
        received++;
    else if (mode == CLIENT)
        receive_as_client(host, pdu, length - 9);
    else
        receive_as_server(host, pdu, length - 9);
}

static size_t packet_length(const uint8_t *bytes, size_t length)
{
    if (bytes[0] == 1)
        return length < 4 ? 0 : 4u + bytes[3];
    if (bytes[0] == 2)
        return length < 5 ? 0 : 5u + get(bytes + 3);
    fprintf(stderr, "no packet begins with %02x\n", bytes[0]);
    exit(1);
}

static void read_host(struct host *host)
{
    ssize_t count = recv(host->fd, host->in + host->in_length, sizeof(host->in) - host->in_length, 0);
    if (count == 0)
        exit(0);
    if (count < 0) {
        if (errno == EAGAIN || errno == EINTR)
            return;
        exit(0);
    }
    host->in_length += (size_t)count;
    size_t at = 0;
    while (at < host->in_length) {
        size_t length = packet_length(host->in + at, host->in_length - at);
        if (length == 0 || at + length > host->in_length)
            break;
        if (host->in[at] == 1)
            answer(host, get(host->in + at + 1), host->in + at + 4);
        else
            receive_acl(host, host->in + at, length);
        at += length;
    }
    memmove(host->in, host->in + at, host->in_length - at);
    host->in_length -= at;
}

/* A host's packet is complete once the kernel has accepted it for the other host. */
static void complete_relayed(void)
{
    for (int i = 0; i < host_count && mode == RELAY; i++) {
        if (hosts[i].uncompleted == 0 || backlog(&hosts[1 - i]) >= BACKLOG_LIMIT)
            continue;
        for (; hosts[i].uncompleted > 0; hosts[i].uncompleted--)
            completed_packets(&hosts[i], 1);
        flush(&hosts[i]);
    }
}

/* The reports of a file */
static struct listed {
    uint8_t address[6], length, data[31];
} *listed;
static size_t listed_count, listed_next;

static size_t read_digits(const char *text, uint8_t *bytes, size_t limit)
{
    size_t length = 0;
    unsigned byte;
    for (; length < limit && sscanf(text + 2 * length, "%2x", &byte) == 1; length++)
        bytes[length] = (uint8_t)byte;
    return length;
}

static void read_reports(const char *path)
{
    FILE *file = fopen(path, "r");
    char address[16], data[80];
    if (file == NULL)
        fail(path);
    while (fscanf(file, "%15s %79s", address, data) == 2) {
        if (listed_count % 1024 == 0 && !(listed = realloc(listed, (listed_count + 1024) * sizeof(*listed))))
            fail("realloc");
        struct listed *report = &listed[listed_count++];
        read_digits(address, report->address, sizeof(report->address));
        report->length = (uint8_t)read_digits(data, report->data, sizeof(report->data));
    }
    fclose(file);
}

static void report_listed(struct host *host)
{
    if (listed_next == listed_count || backlog(host) >= BACKLOG_LIMIT)
        return;
    const struct listed *report = &listed[listed_next++];
    uint8_t parameters[43] = { 2, 1, 3, 1 };
    memcpy(parameters + 4, report->address, sizeof(report->address));
    parameters[10] = report->length;
    memcpy(parameters + 11, report->data, report->length);
    parameters[11 + report->length] = 0xC4;
    event(host, 0x3E, parameters, (uint8_t)(12 + report->length));
}

/* Advertising reports of 1,000 devices in turn */
static void report(struct host *host)
{
    if (listed)
        return report_listed(host);
    static unsigned number;
    number = (number + 1) % 1000;
    uint8_t parameters[43] = {
        2, 1, 0, 1, (uint8_t)number, (uint8_t)(number >> 8), 0, 0, 0, 0xC0, 31,
        2, 0x01, 0x06, 3, 0x03, 0x1A, 0x18, 9, 0x09, 'S', 'e', 'n', 's', 'o', 'r', '0', '0',
        12, 0xFF, 0xFF, 0xFF, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xC4
    };
    parameters[41] = 0;
    if (sensors) {
        /* Flags, a name, and a packet number, a temperature and a humidity. Each device repeats a report ten times. */
        static uint32_t count;
        const uint8_t data[31] = {
            2, 0x01, 0x06, 14, 0x16, 0xD2, 0xFC, 0x40, 0x00, (uint8_t)(count / 10000), 0x02, (uint8_t)(count / 60000), 0x09,
            0x03, 0xBF, 0x13, 0x01, 0x5D, 12, 0x09, 'S', 'e', 'n', 's', 'o', 'r', ' ', '0', '0', '0', '0'
        };
        count++;
        memcpy(parameters + 11, data, sizeof(data));
    }
    parameters[42] = 0xC4;
    if (backlog(host) < BACKLOG_LIMIT)
        event(host, 0x3E, parameters, sizeof(parameters));
}

/* A timer that fires RATE times a second, at most 1,000 times. */
static int report_timer(void)
{
    unsigned frequency = rate < 1000 ? rate : 1000;
    long interval = 1000000000L / frequency;
    struct timespec each = { interval / 1000000000L, interval % 1000000000L };
    struct itimerspec setting = { .it_interval = each, .it_value = each };
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd < 0 || timerfd_settime(fd, 0, &setting, NULL) < 0)
        fail("timerfd");
    return fd;
}

int main(int count, char **arguments)
{
    static const char *const modes[] = { "relay", "client", "server", "reports" };
    if (count < 3)
        return fprintf(stderr, "null-controller relay|client|server|reports ADDRESS [RATE [bthome|FILE]]\n"), 2;
    for (mode = RELAY; mode < REPORTS && strcmp(arguments[1], modes[mode]);)
        mode++;
    rate = count > 3 ? (unsigned)atoi(arguments[3]) : 0;
    sensors = count > 4 && !strcmp(arguments[4], "bthome");
    if (count > 4 && !sensors)
        read_reports(arguments[4]);
    int listener = listen_at(arguments[2]);
    int wanted = mode == RELAY ? 2 : 1;
    int timer = mode == REPORTS && rate > 0 ? report_timer() : -1;
    printf("{\"listening\": true}\n");
    fflush(stdout);

    for (;;) {
        struct pollfd entries[5] = {
            { .fd = host_count < wanted ? listener : -1, .events = POLLIN },
            { .fd = timer >= 0 && host_count > 0 && hosts[0].scans ? timer : -1, .events = POLLIN },
            { .fd = STDIN_FILENO, .events = POLLIN },
        };
        for (int i = 0; i < 2; i++) {
            entries[3 + i].fd = i < host_count ? hosts[i].fd : -1;
            bool pours = phase == COMMANDING || phase == NOTIFYING;
            entries[3 + i].events = (short)(POLLIN | (backlog(&hosts[i]) > 0 || pours ? POLLOUT : 0));
        }
        if (poll(entries, 5, -1) < 0 && errno != EINTR)
            fail("poll");
        if (entries[0].revents) {
            int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (fd < 0)
                fail("accept");
            /* Has no effect on a UNIX socket. */
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
            hosts[host_count++].fd = fd;
        }
        if (entries[1].revents) {
            uint64_t times = 0;
            if (read(timer, &times, sizeof(times)) == sizeof(times))
                for (uint64_t i = times * (rate < 1000 ? 1 : rate / 1000); i > 0; i--)
                    report(&hosts[0]);
        }
        if (entries[2].revents)
            obey_input(obey);
        for (int i = 0; i < 2; i++)
            if (entries[3 + i].revents & (POLLIN | POLLHUP | POLLERR))
                read_host(&hosts[i]);
        if ((phase == COMMANDING || phase == NOTIFYING) && host_count > 0)
            pour(&hosts[0]);
        for (int i = 0; i < host_count; i++)
            flush(&hosts[i]);
        complete_relayed();
    }
}
