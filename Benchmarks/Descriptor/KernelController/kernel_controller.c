/*
 * A controller without a radio for the kernel's HCI, through /dev/vhci, with traffic of a given amount and rate:
 *
 *     kernel-controller
 *
 * It answers every command at once. After the command `peer`, it reports a connectable peer with a GATT server while the
 * host scans, until the host connects. At each connection event, every 7.5 ms, it completes and answers all packets
 * that the host has sent until then. So each host gets the same number of packets at the same rate.
 *
 * Commands on standard input, each answered with a line of JSON when it is finished:
 *
 *     reports N RATE         sends N advertising reports of 100 devices, each with other data, RATE per second, while
 *                            the host scans
 *     notifications N RATE   sends N notifications of 20 bytes, RATE per second
 *     peer                   makes the peer connectable
 *     count                  prints the number of reads, Write Requests and Write Commands since the last `count`
 */
#define _GNU_SOURCE
#include "csupport.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { ACL_LENGTH = 251, ACL_COUNT = 16, HANDLE = 0x40, MTU = 247, DEVICES = 100, VALUE_LENGTH = 20 };
enum { INTERVAL_NANOSECONDS = 7500000, TRAFFIC_NANOSECONDS = 1000000 };
static const uint8_t OWN_ADDRESS[6] = { 1, 0, 0, 0x4C, 0x55, 0x4E }, PEER_ADDRESS[6] = { 2, 0, 0, 0x4C, 0x55, 0x4E };

static int device;
static bool scans, initiates, linked, peer_advertises;
/* The host's packets since the last connection event. */
static uint8_t packets[ACL_COUNT][5 + ACL_LENGTH];
static unsigned packet_count;
static uint64_t reads, writes, commands;
/* The traffic of the current command. */
static enum { IDLE, REPORTS, NOTIFICATIONS } traffic;
static uint64_t wanted, sent, started;
static double rate;

/* Packets to the host; the device takes one with each write. */

static void send_packet(const uint8_t *bytes, size_t length)
{
    if (write(device, bytes, length) != (ssize_t)length)
        fail("write");
}

static void event(uint8_t code, const void *parameters, size_t length)
{
    uint8_t bytes[258] = { 4, code, (uint8_t)length };
    memcpy(bytes + 3, parameters, length);
    send_packet(bytes, 3 + length);
}

static void complete(uint16_t opcode, const void *values, size_t length)
{
    uint8_t parameters[80] = { 1, opcode & 0xFF, opcode >> 8, 0 };
    memcpy(parameters + 4, values, length);
    event(0x0E, parameters, 4 + length);
}

static void command_status(uint16_t opcode)
{
    event(0x0F, (uint8_t[]){ 0, 1, opcode & 0xFF, opcode >> 8 }, 4);
}

static void attribute(const uint8_t *pdu, size_t length)
{
    uint8_t bytes[9 + MTU] = { 2, HANDLE, 0x20 };
    put(bytes + 3, (uint16_t)(length + 4));
    put(bytes + 5, (uint16_t)length);
    put(bytes + 7, 4);
    memcpy(bytes + 9, pdu, length);
    send_packet(bytes, 9 + length);
}

/* Reports */

static void report(uint8_t type, bool is_random, const uint8_t *address, const uint8_t *data, uint8_t length)
{
    uint8_t parameters[43] = { 2, 1, type, is_random };
    memcpy(parameters + 4, address, 6);
    parameters[10] = length;
    memcpy(parameters + 11, data, length);
    parameters[11 + length] = 0xC4; /* RSSI: -60 dBm */
    event(0x3E, parameters, 12u + length);
}

/* A beacon's report of 31 bytes: flags, a service UUID, a short name and manufacturer data with a counter. */
static void report_device(uint64_t number)
{
    uint8_t index = (uint8_t)(number % DEVICES);
    uint8_t address[6] = { index, 0, 0, 0, 0, 0xC0 };
    uint8_t data[31] = {
        2, 0x01, 0x06, 3, 0x03, 0x1A, 0x18, 9, 0x09, 'S', 'e', 'n', 's', 'o', 'r',
        (uint8_t)('0' + index / 10), (uint8_t)('0' + index % 10), 13, 0xFF, 0xFF, 0xFF
    };
    memcpy(data + 21, &number, sizeof(number));
    report(3, true, address, data, sizeof(data));
}

/* In an active scan, the kernel keeps the report of a connectable device until its scan response arrives. */
static void report_peer(void)
{
    static const uint8_t data[] = { 2, 0x01, 0x06, 3, 0x03, 0xF0, 0xFF }, response[] = { 5, 0x09, 'P', 'e', 'e', 'r' };
    report(0, false, PEER_ADDRESS, data, sizeof(data));
    report(4, false, PEER_ADDRESS, response, sizeof(response));
}

static void connect_peer(void)
{
    if (!initiates || !peer_advertises || linked)
        return;
    linked = true;
    initiates = peer_advertises = false;
    uint8_t parameters[19] = { 1, 0, HANDLE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0x2C, 1, 0 };
    memcpy(parameters + 6, PEER_ADDRESS, 6);
    event(0x3E, parameters, sizeof(parameters));
}

/* Commands */

static void disconnect(uint8_t reason)
{
    if (linked)
        event(0x05, (uint8_t[]){ 0, HANDLE, 0, reason }, 4);
    linked = false;
    packet_count = 0;
}

static void answer(uint16_t opcode, const uint8_t *parameters)
{
    uint8_t values[64] = { 0 };
    switch (opcode) {
    case 0x0406: /* Disconnect */
        command_status(opcode);
        return disconnect(0x16);
    case 0x0C03: /* Reset */
        scans = initiates = linked = false;
        packet_count = 0;
        return complete(opcode, values, 0);
    case 0x1001: /* Read Local Version Information */
        return complete(opcode, (uint8_t[]){ 0x0D, 0, 0, 0x0D, 0xFF, 0xFF, 0, 0 }, 8);
    case 0x1002: /* Read Local Supported Commands: what LE needs at least */
        memcpy(values, (uint8_t[]){ 0x20, 0, 0, 0, 0, 0xC0, 0, 0, 0, 0, 0, 0, 0, 0, 0xA8, 0x02 }, 16);
        memcpy(values + 25, (uint8_t[]){ 0xF7, 0xFF, 0xA7, 0x0B }, 4);
        return complete(opcode, values, 64);
    case 0x1003: /* Read Local Supported Features: no BR/EDR */
        values[4] = 0x60;
        return complete(opcode, values, 8);
    case 0x1005: /* Read Buffer Size */
        return complete(opcode, (uint8_t[]){ ACL_LENGTH, 0, 0, ACL_COUNT, 0, 0, 0 }, 7);
    case 0x1009: /* Read BD_ADDR */
        return complete(opcode, OWN_ADDRESS, 6);
    case 0x2002: /* LE Read Buffer Size */
        return complete(opcode, (uint8_t[]){ ACL_LENGTH, 0, ACL_COUNT }, 3);
    case 0x2003: /* LE Read Local Supported Features */
        return complete(opcode, values, 8);
    case 0x2007: /* LE Read Advertising Physical Channel Tx Power */
        return complete(opcode, values, 1);
    case 0x200F: /* LE Read Filter Accept List Size */
        return complete(opcode, (uint8_t[]){ 8 }, 1);
    case 0x2018: /* LE Rand */
        return complete(opcode, (uint8_t[]){ 1, 2, 3, 4, 5, 6, 7, 8 }, 8);
    case 0x201C: /* LE Read Supported States */
        memset(values, 0xFF, 8);
        return complete(opcode, values, 8);
    case 0x200C: /* LE Set Scan Enable */
        scans = parameters[0] == 1;
        return complete(opcode, values, 0);
    case 0x200D: /* LE Create Connection */
        initiates = true;
        command_status(opcode);
        return connect_peer();
    case 0x200E: /* LE Create Connection Cancel */
        complete(opcode, values, 0);
        if (initiates)
            event(0x3E, (uint8_t[19]){ 1, 0x02 }, 19);
        initiates = false;
        return;
    case 0x2016: /* LE Read Remote Features */
        command_status(opcode);
        return event(0x3E, (uint8_t[]){ 4, 0, HANDLE, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, 12);
    case 0x2013: /* LE Connection Update */
        command_status(opcode);
        return event(0x3E, (uint8_t[]){ 3, 0, HANDLE, 0, 6, 0, 0, 0, 0x2C, 1 }, 10);
    case 0x041D: /* Read Remote Version Information */
        command_status(opcode);
        return event(0x0C, (uint8_t[]){ 0, HANDLE, 0, 0x0D, 0xFF, 0xFF, 0, 0 }, 8);
    default:
        return complete(opcode, values, 0);
    }
}

/*
 * The peer's attributes: 1 service FFF0; 2, 3 characteristic FFF1, to read; 4, 5 FFF2, to write; 6, 7 FFF3, which
 * notifies; 8 the configuration of FFF3.
 */
static void answer_request(const uint8_t *pdu, size_t length)
{
    uint16_t start = length >= 3 ? get(pdu + 1) : 0, end = length >= 5 ? get(pdu + 3) : 0;
    uint8_t error = 0x0A; /* Attribute Not Found */
    switch (pdu[0]) {
    case 0x02: /* Exchange MTU */
        return attribute((uint8_t[]){ 0x03, MTU, 0 }, 3);
    case 0x10: /* Read By Group Type */
        if (start <= 1 && get(pdu + 5) == 0x2800)
            return attribute((uint8_t[]){ 0x11, 6, 1, 0, 8, 0, 0xF0, 0xFF }, 8);
        break;
    case 0x08: { /* Read By Type */
        static const uint8_t properties[3] = { 0x02, 0x0C, 0x10 };
        uint8_t first = start <= 2 ? 2 : start <= 4 ? 4 : 6;
        if (get(pdu + 5) != 0x2803 || start > 6 || end < first)
            break;
        uint8_t number = first / 2;
        return attribute(
            (uint8_t[]){ 0x09, 7, first, 0, properties[number - 1], first + 1, 0, 0xF0 + number, 0xFF }, 9);
    }
    case 0x04: /* Find Information */
        if (start <= 8 && end >= 8)
            return attribute((uint8_t[]){ 0x05, 1, 8, 0, 0x02, 0x29 }, 6);
        break;
    case 0x0A: { /* Read */
        uint8_t response[1 + VALUE_LENGTH] = { 0x0B };
        memset(response + 1, 0x55, VALUE_LENGTH);
        reads++;
        return attribute(response, sizeof(response));
    }
    case 0x12: /* Write */
        writes++;
        return attribute((uint8_t[]){ 0x13 }, 1);
    case 0x52: /* Write Command */
        commands++;
        return;
    default:
        error = 0x06; /* Request Not Supported */
    }
    /* Neither commands nor responses and confirmations, whose opcodes are odd or 1E, are answered. */
    if (!(pdu[0] & 0x41) && pdu[0] != 0x1E)
        attribute((uint8_t[]){ 0x01, pdu[0], start & 0xFF, start >> 8, error }, 5);
}

static void connection_event(void)
{
    if (packet_count > 0)
        event(0x13, (uint8_t[]){ 1, HANDLE, 0, (uint8_t)packet_count, 0 }, 5);
    for (unsigned i = 0; i < packet_count; i++) {
        size_t length = get(packets[i] + 5);
        if (get(packets[i] + 7) == 4 && length > 0)
            answer_request(packets[i] + 9, length);
    }
    packet_count = 0;
}

static void read_host(void)
{
    uint8_t packet[4096];
    ssize_t length = read(device, packet, sizeof(packet));
    if (length < 1) {
        if (length < 0 && errno != EAGAIN && errno != EINTR)
            fail("/dev/vhci");
        return;
    }
    if (packet[0] == 1 && length >= 4)
        answer(get(packet + 1), packet + 4);
    else if (packet[0] == 2 && linked && packet_count < ACL_COUNT && length <= (ssize_t)sizeof(*packets))
        memcpy(packets[packet_count++], packet, (size_t)length);
}

/* Traffic, and the commands of the measurement */

/* Sends what is due by now. Time without a scan does not count. */
static void send_traffic(void)
{
    uint64_t time = now();
    if (traffic == REPORTS && !scans)
        started += TRAFFIC_NANOSECONDS;
    double due = ((double)time - (double)started) / 1e9 * rate;
    for (; traffic != IDLE && (traffic != REPORTS || scans) && sent < wanted && (double)sent < due; sent++) {
        static uint64_t number;
        number++;
        if (traffic == REPORTS) {
            report_device(number);
        } else {
            uint8_t pdu[3 + VALUE_LENGTH] = { 0x1B, 7, 0 };
            memcpy(pdu + 3, &number, sizeof(number));
            attribute(pdu, sizeof(pdu));
        }
    }
    if (traffic != IDLE && sent == wanted) {
        traffic = IDLE;
        printf("{\"sent\": %llu}\n", (unsigned long long)sent);
    }
}

static void obey(const char *line)
{
    char verb[32] = "", word[32] = "";
    sscanf(line, "%31s %31s %lf", verb, word, &rate);
    if (!strcmp(verb, "reports") || !strcmp(verb, "notifications")) {
        traffic = verb[0] == 'r' ? REPORTS : NOTIFICATIONS;
        wanted = strtoull(word, NULL, 10);
        sent = 0;
        started = now();
    } else if (!strcmp(verb, "peer")) {
        peer_advertises = true;
        connect_peer();
        puts("{\"peer\": true}");
    } else if (!strcmp(verb, "count")) {
        printf("{\"reads\": %llu, \"writes\": %llu, \"commands\": %llu}\n", (unsigned long long)reads,
               (unsigned long long)writes, (unsigned long long)commands);
        reads = writes = commands = 0;
    }
}

static void read_commands(void)
{
    static char line[256];
    static size_t length;
    ssize_t got = read(STDIN_FILENO, line + length, sizeof(line) - 1 - length);
    if (got <= 0)
        exit(0);
    length += (size_t)got;
    line[length] = 0;
    for (char *end; (end = strchr(line, '\n'));) {
        obey(line);
        length -= (size_t)(end + 1 - line);
        memmove(line, end + 1, length + 1);
    }
}

static int timer(long nanoseconds)
{
    struct timespec each = { 0, nanoseconds };
    struct itimerspec setting = { .it_interval = each, .it_value = each };
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd < 0 || timerfd_settime(fd, 0, &setting, NULL) < 0)
        fail("timerfd");
    return fd;
}

int main(void)
{
    device = open("/dev/vhci", O_RDWR | O_CLOEXEC);
    if (device < 0 || write(device, (uint8_t[]){ 0xFF, 0 }, 2) != 2)
        fail("/dev/vhci");
    uint8_t response[4];
    if (read(device, response, sizeof(response)) != sizeof(response))
        fail("/dev/vhci");
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("{\"index\": %u}\n", get(response + 2));
    int traffic_timer = timer(TRAFFIC_NANOSECONDS), event_timer = timer(INTERVAL_NANOSECONDS);
    for (uint64_t events = 0;;) {
        bool reports_peer = peer_advertises && scans;
        struct pollfd entries[4] = {
            { .fd = device, .events = POLLIN },
            { .fd = STDIN_FILENO, .events = POLLIN },
            { .fd = traffic != IDLE ? traffic_timer : -1, .events = POLLIN },
            { .fd = linked || reports_peer ? event_timer : -1, .events = POLLIN },
        };
        if (poll(entries, 4, -1) < 0)
            fail("poll");
        uint64_t times;
        if (entries[0].revents)
            read_host();
        if (entries[1].revents)
            read_commands();
        if (entries[2].revents && read(traffic_timer, &times, sizeof(times)) > 0)
            send_traffic();
        if (entries[3].revents && read(event_timer, &times, sizeof(times)) > 0) {
            if (linked)
                connection_event();
            else if (reports_peer && ++events % 4 == 0)
                report_peer();
        }
    }
}
