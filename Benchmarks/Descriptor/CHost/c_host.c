/*
 * A minimal GATT host in C. It parses each packet, looks up the attribute, passes on the value and counts the
 * controller's buffers. One thread, poll, and one write for all packets of a turn. The comparison for
 * `measured-host`, with the same commands and answers.
 *
 *     c-host server ADDRESS
 *     c-host client ADDRESS
 *
 * It has no security, no timeouts, no long values and one link. A host of the same shape with all this is slower.
 */
#define _GNU_SOURCE
#include "csupport.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { VALUE_LENGTH = 244, SHORT_LENGTH = 20, MTU = 247, QUEUE_LIMIT = 32 };

/* The socket, with the bytes that wait to be parsed and to be written */

static int fd;
static uint8_t in[1 << 16], out[1 << 17];
static size_t in_length, out_start, out_end;

static void flush(void)
{
    while (out_start < out_end) {
        ssize_t count = send(fd, out + out_start, out_end - out_start, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            if (errno == EAGAIN)
                return;
            exit(0);
        }
        out_start += (size_t)count;
    }
    out_start = out_end = 0;
}

static uint8_t *room(size_t length)
{
    if (out_end + length > sizeof(out)) {
        memmove(out, out + out_start, out_end - out_start);
        out_end -= out_start;
        out_start = 0;
        if (out_end + length > sizeof(out)) {
            fprintf(stderr, "the controller does not read\n");
            exit(1);
        }
    }
    out_end += length;
    return out + out_end - length;
}

/* Commands: one at a time, from a list */

struct command {
    uint16_t opcode;
    uint8_t length;
    uint8_t parameters[32];
};

static const struct command server_commands[] = {
    { 0x0C03, 0, { 0 } }, /* Reset */
    { 0x0C01, 8, { 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x3F } }, /* Set Event Mask */
    { 0x2002, 0, { 0 } }, /* LE Read Buffer Size */
    { 0x2006, 15, { 0xA0, 0, 0xF0, 0, [13] = 7 } }, /* LE Set Advertising Parameters */
    { 0x2008, 32, { 3, 2, 0x01, 0x06 } }, /* LE Set Advertising Data */
    { 0x200A, 1, { 1 } }, /* LE Set Advertising Enable */
    { 0, 0, { 0 } },
};

static const struct command client_commands[] = {
    { 0x0C03, 0, { 0 } },
    { 0x0C01, 8, { 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x3F } },
    { 0x2002, 0, { 0 } },
    /* LE Create Connection */
    { 0x200D, 25, { 0x60, 0, 0x30, 0, 0, 0, 1, 0, 0, 0x4C, 0x55, 0x4E, 0, 6, 0, 6, 0, 0, 0, 0x2C, 1 } },
    { 0, 0, { 0 } },
};

static const struct command *next_command;
static bool is_server, is_advertising;

static void send_command(void)
{
    if (next_command->opcode == 0) {
        if (is_server && !is_advertising) {
            puts("{\"advertising\": true}");
            fflush(stdout);
        }
        is_advertising = true;
        return;
    }
    uint8_t *packet = room(4u + next_command->length);
    packet[0] = 1;
    put(packet + 1, next_command->opcode);
    packet[3] = next_command->length;
    memcpy(packet + 4, next_command->parameters, next_command->length);
    next_command++;
}

/* The link: the controller's free buffers, and what waits for one */

static uint16_t connection, mtu = 23;
static unsigned free_buffers;

struct waiting {
    uint8_t length;
    uint8_t pdu[MTU];
};

static struct waiting queue[QUEUE_LIMIT];
static unsigned queue_start, queue_count;

/* Returns the place of an attribute PDU, in a packet or in the queue. */
static uint8_t *attribute(size_t length)
{
    if (free_buffers == 0) {
        if (queue_count == QUEUE_LIMIT) {
            fprintf(stderr, "the peer sends requests without reading responses\n");
            exit(1);
        }
        struct waiting *entry = &queue[(queue_start + queue_count++) % QUEUE_LIMIT];
        entry->length = (uint8_t)length;
        return entry->pdu;
    }
    free_buffers--;
    uint8_t *packet = room(9 + length);
    packet[0] = 2;
    put(packet + 1, connection);
    put(packet + 3, (uint16_t)(length + 4));
    put(packet + 5, (uint16_t)length);
    put(packet + 7, 4);
    return packet + 9;
}

static void send_waiting(void)
{
    while (queue_count > 0 && free_buffers > 0) {
        struct waiting *entry = &queue[queue_start];
        queue_start = (queue_start + 1) % QUEUE_LIMIT;
        queue_count--;
        memcpy(attribute(entry->length), entry->pdu, entry->length);
    }
}

/* The operations that the commands on standard input ask for */

static enum { IDLE, READING, WRITING, COMMANDING, NOTIFYING } phase;
static struct durations durations;
static uint64_t asked_at, received;
static uint8_t last_value[512];

/* The application: it takes each value. */
static void take_value(uint16_t handle, const uint8_t *value, size_t length)
{
    (void)handle;
    memcpy(last_value, value, length < sizeof(last_value) ? length : sizeof(last_value));
    received++;
}

static void (*value_handler)(uint16_t, const uint8_t *, size_t) = take_value;

/* The server: a service FFF0 with FFF1 to read, FFF2 to write and FFF3 to notify */

enum { CAN_READ = 1, CAN_WRITE = 2 };

struct attribute {
    uint16_t type;
    uint8_t permissions, length;
    uint8_t value[VALUE_LENGTH];
};

static struct attribute attributes[] = {
    { 0x2800, CAN_READ, 2, { 0xF0, 0xFF } },
    { 0x2803, CAN_READ, 5, { 0x02, 3, 0, 0xF1, 0xFF } },
    { 0xFFF1, CAN_READ, SHORT_LENGTH, { 0x55 } },
    { 0x2803, CAN_READ, 5, { 0x0C, 5, 0, 0xF2, 0xFF } },
    { 0xFFF2, CAN_WRITE, 0, { 0 } },
    { 0x2803, CAN_READ, 5, { 0x10, 7, 0, 0xF3, 0xFF } },
    { 0xFFF3, CAN_READ, SHORT_LENGTH, { 0x55 } },
    { 0x2902, CAN_READ | CAN_WRITE, 2, { 0 } },
};

enum { ATTRIBUTE_COUNT = sizeof(attributes) / sizeof(*attributes), NOTIFIED = 7 };

static struct attribute *find(uint16_t handle)
{
    return handle >= 1 && handle <= ATTRIBUTE_COUNT ? &attributes[handle - 1] : NULL;
}

static void error_response(uint8_t opcode, uint16_t handle, uint8_t error)
{
    uint8_t *pdu = attribute(5);
    pdu[0] = 0x01;
    pdu[1] = opcode;
    put(pdu + 2, handle);
    pdu[4] = error;
}

/* Read By Type and Read By Group Type Requests, of one attribute each */
static void serve_search(const uint8_t *request, size_t length)
{
    uint16_t start = get(request + 1), end = get(request + 3), type = length >= 7 ? get(request + 5) : 0;
    bool of_groups = request[0] == 0x10;
    for (uint16_t handle = start ? start : 1; handle <= end && find(handle); handle++) {
        struct attribute *found = find(handle);
        if (found->type != type)
            continue;
        size_t head = of_groups ? 4 : 2, most = mtu - 2u - head;
        size_t count = found->length < most ? found->length : most;
        uint8_t *pdu = attribute(2 + head + count);
        pdu[0] = request[0] + 1;
        pdu[1] = (uint8_t)(head + count);
        put(pdu + 2, handle);
        if (of_groups)
            put(pdu + 4, ATTRIBUTE_COUNT);
        memcpy(pdu + 2 + head, found->value, count);
        return;
    }
    error_response(request[0], start, 0x0A);
}

static void serve_information(const uint8_t *request)
{
    uint16_t handle = get(request + 1);
    struct attribute *found = find(handle);
    if (!found)
        return error_response(request[0], handle, 0x0A);
    uint8_t *pdu = attribute(6);
    pdu[0] = 0x05;
    pdu[1] = 1;
    put(pdu + 2, handle);
    put(pdu + 4, found->type);
}

static void serve_read(const uint8_t *request)
{
    uint16_t handle = get(request + 1);
    struct attribute *read = find(handle);
    if (!read || !(read->permissions & CAN_READ))
        return error_response(request[0], handle, read ? 0x02 : 0x01);
    size_t length = read->length < mtu - 1 ? read->length : mtu - 1u;
    uint8_t *pdu = attribute(1 + length);
    pdu[0] = 0x0B;
    memcpy(pdu + 1, read->value, length);
}

static void serve_write(const uint8_t *request, size_t length, bool responds)
{
    uint16_t handle = get(request + 1);
    struct attribute *written = find(handle);
    size_t count = length - 3;
    if (!written || !(written->permissions & CAN_WRITE) || count > sizeof(written->value)) {
        if (responds)
            error_response(request[0], handle, !written ? 0x01 : count > sizeof(written->value) ? 0x0D : 0x03);
        return;
    }
    memcpy(written->value, request + 3, count);
    written->length = (uint8_t)count;
    value_handler(handle, request + 3, count);
    if (responds)
        *attribute(1) = 0x13;
}

/* The client */

static uint16_t value_handles[3], discovered_to;

static void discover(void)
{
    uint8_t *pdu = attribute(7);
    pdu[0] = 0x08;
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

static void write_value(uint8_t opcode, uint16_t handle, size_t length)
{
    uint8_t *pdu = attribute(3 + length);
    pdu[0] = opcode;
    put(pdu + 1, handle);
    memset(pdu + 3, 0x55, length);
}

static void ask(void)
{
    asked_at = now();
    if (phase == WRITING)
        return write_value(0x12, value_handles[1], SHORT_LENGTH);
    uint8_t *pdu = attribute(3);
    pdu[0] = 0x0A;
    put(pdu + 1, value_handles[0]);
}

static void finish_phase(void)
{
    durations_print(&durations);
    phase = IDLE;
}

static void take_response(const uint8_t *pdu, size_t length)
{
    if (pdu[0] == 0x0B)
        value_handler(value_handles[0], pdu + 1, length - 1);
    if (phase == READING || phase == WRITING) {
        if (durations_note(&durations, asked_at))
            ask();
        else
            finish_phase();
    } else if (pdu[0] == 0x13) {
        puts("{}"); /* of the subscription */
        fflush(stdout);
    }
}

/* An attribute PDU from the peer */
static void receive(const uint8_t *pdu, size_t length)
{
    switch (pdu[0]) {
    case 0x01: /* Error Response, the end of the discovery */
        puts("{\"connected\": true}");
        fflush(stdout);
        return;
    case 0x02: { /* Exchange MTU Request */
        mtu = length >= 3 && get(pdu + 1) < MTU ? get(pdu + 1) : MTU;
        uint8_t *response = attribute(3);
        response[0] = 0x03;
        put(response + 1, MTU);
        return;
    }
    case 0x03: /* Exchange MTU Response */
        mtu = length >= 3 && get(pdu + 1) < MTU ? get(pdu + 1) : MTU;
        return discover();
    case 0x09:
        note_declarations(pdu, length);
        return discover();
    case 0x0B:
    case 0x13:
        return take_response(pdu, length);
    case 0x1B: /* Notification */
        if (length >= 3)
            value_handler(get(pdu + 1), pdu + 3, length - 3);
        return;
    case 0x08:
    case 0x10:
        return length >= 7 ? serve_search(pdu, length) : error_response(pdu[0], 0, 0x04);
    case 0x04:
        return length >= 5 ? serve_information(pdu) : error_response(pdu[0], 0, 0x04);
    case 0x0A:
        return length >= 3 ? serve_read(pdu) : error_response(pdu[0], 0, 0x04);
    case 0x12:
    case 0x52:
        if (length >= 3)
            serve_write(pdu, length, pdu[0] == 0x12);
        return;
    default:
        if (!(pdu[0] & 0x40))
            error_response(pdu[0], 0, 0x06);
    }
}

/* Packets from the controller */

static void receive_acl(const uint8_t *packet, size_t length)
{
    bool begins = (packet[2] & 0x30) == 0x20;
    if (length < 10 || (get(packet + 1) & 0xFFF) != connection || !begins || get(packet + 5) + 9u != length
        || get(packet + 7) != 4)
        return;
    receive(packet + 9, length - 9);
}

static void receive_event(const uint8_t *packet, size_t length)
{
    const uint8_t *parameters = packet + 3;
    switch (packet[1]) {
    case 0x0E: /* Command Complete */
        if (length >= 10 && get(parameters + 1) == 0x2002)
            free_buffers = parameters[6];
        return send_command();
    case 0x0F: /* Command Status */
        return send_command();
    case 0x13: /* Number Of Completed Packets */
        for (unsigned i = 0; i < parameters[0] && 8 + 4 * i <= length; i++)
            if (get(parameters + 1 + 4 * i) == connection)
                free_buffers += get(parameters + 3 + 4 * i);
        return send_waiting();
    case 0x3E: /* LE Meta: Connection Complete */
        if (parameters[0] != 1 || length < 22 || parameters[1] != 0)
            return;
        connection = get(parameters + 2);
        if (!is_server) {
            uint8_t *pdu = attribute(3);
            pdu[0] = 0x02;
            put(pdu + 1, MTU);
        }
    }
}

static size_t packet_length(const uint8_t *bytes, size_t length)
{
    if (bytes[0] == 4)
        return length < 3 ? 0 : 3u + bytes[2];
    if (bytes[0] == 2)
        return length < 5 ? 0 : 5u + get(bytes + 3);
    fprintf(stderr, "no packet begins with %02x\n", bytes[0]);
    exit(1);
}

static void read_controller(void)
{
    ssize_t count = recv(fd, in + in_length, sizeof(in) - in_length, 0);
    if (count == 0)
        exit(0);
    if (count < 0) {
        if (errno == EAGAIN || errno == EINTR)
            return;
        exit(0);
    }
    in_length += (size_t)count;
    size_t at = 0;
    while (at < in_length) {
        size_t length = packet_length(in + at, in_length - at);
        if (length == 0 || at + length > in_length)
            break;
        if (in[at] == 4)
            receive_event(in + at, length);
        else
            receive_acl(in + at, length);
        at += length;
    }
    memmove(in, in + at, in_length - at);
    in_length -= at;
    if (in_length == sizeof(in)) {
        fprintf(stderr, "a packet is longer than %zu bytes\n", sizeof(in));
        exit(1);
    }
}

/* Sends Write Commands or notifications for each free buffer. */
static void pour(void)
{
    while (free_buffers > 0 && queue_count == 0) {
        if (durations.operations % 64 == 0 && now() >= durations.end)
            return finish_phase();
        if (phase == COMMANDING)
            write_value(0x52, value_handles[1], VALUE_LENGTH);
        else
            write_value(0x1B, NOTIFIED, VALUE_LENGTH);
        durations.operations++;
    }
}

static void obey(const char *verb, double seconds)
{
    if (!strcmp(verb, "count")) {
        printf("{\"received\": %llu}\n", (unsigned long long)received);
        fflush(stdout);
        received = 0;
        return;
    }
    if (!strcmp(verb, "subscribe")) {
        uint8_t *pdu = attribute(5);
        pdu[0] = 0x12;
        put(pdu + 1, value_handles[2] + 1);
        put(pdu + 3, 1);
        return;
    }
    durations_begin(&durations, seconds);
    if (!strcmp(verb, "reads") || !strcmp(verb, "writes")) {
        phase = verb[0] == 'r' ? READING : WRITING;
        ask();
    } else if (!strcmp(verb, "commands") || !strcmp(verb, "notifications")) {
        phase = verb[0] == 'c' ? COMMANDING : NOTIFYING;
    }
}

int main(int count, char **arguments)
{
    if (count != 3 || (strcmp(arguments[1], "server") && strcmp(arguments[1], "client")))
        return fprintf(stderr, "usage: c-host server|client unix:PATH|tcp:HOST:PORT\n"), 2;
    is_server = !strcmp(arguments[1], "server");
    next_command = is_server ? server_commands : client_commands;
    fd = connect_to(arguments[2]);
    send_command();
    flush();
    for (;;) {
        struct pollfd entries[2] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = fd, .events = POLLIN } };
        if (out_start < out_end)
            entries[1].events |= POLLOUT;
        if (poll(entries, 2, -1) < 0 && errno != EINTR)
            fail("poll");
        if (entries[0].revents)
            obey_input(obey);
        if (entries[1].revents & (POLLIN | POLLHUP | POLLERR))
            read_controller();
        if (phase == COMMANDING || phase == NOTIFYING)
            pour();
        flush();
    }
}
