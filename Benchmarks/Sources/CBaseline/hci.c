// L2CAP frames, ACL packets and events.

#include "internal.h"

struct frame {
    uint16_t channel;
    const uint8_t *payload;
    size_t length;
};

static inline int decode_frame(const uint8_t *bytes, size_t length, struct frame *frame) {
    if (length < 4 || (size_t)read16(bytes) + 4 != length) return -1;
    frame->channel = read16(bytes + 2);
    frame->payload = bytes + 4;
    frame->length = length - 4;
    return 0;
}

uint64_t c_decode_l2cap_frame(struct samples samples, size_t operations) {
    struct frame frame;
    FOR_EACH_SAMPLE(decode_frame(bytes, length, &frame) == 0 ? frame.channel + frame.length + frame.payload[0] : 0)
}

uint64_t c_encode_l2cap_frame(struct samples samples, size_t operations) {
    struct packet packet;
    packet_init(&packet);
    uint64_t sum = 0;
    for (size_t index = 0; index < operations; index++) {
        const uint8_t *bytes = samples.bytes + (index & (samples.count - 1)) * samples.length;
        packet_reset(&packet);
        memcpy(packet_append(&packet, samples.length), bytes, samples.length);
        uint8_t *header = packet_prepend(&packet, 4);
        if (header == NULL) continue;
        write16(header, (uint16_t)samples.length);
        write16(header + 2, 4);
        sum += packet_sum(&packet);
    }
    packet_free(&packet);
    return sum;
}

struct acl {
    uint16_t handle;
    uint8_t boundary;
    uint8_t broadcast;
    const uint8_t *data;
    size_t length;
};

static inline int decode_acl(const uint8_t *bytes, size_t length, struct acl *acl) {
    if (length < 4 || (size_t)read16(bytes + 2) + 4 != length) return -1;
    uint16_t word = read16(bytes);
    acl->handle = word & 0x0FFF;
    acl->boundary = word >> 12 & 3;
    acl->broadcast = (uint8_t)(word >> 14);
    acl->data = bytes + 4;
    acl->length = length - 4;
    return 0;
}

uint64_t c_decode_acl(struct samples samples, size_t operations) {
    struct acl acl;
    FOR_EACH_SAMPLE(decode_acl(bytes, length, &acl) == 0 ? acl.handle + acl.boundary + acl.length + acl.data[0] : 0)
}

uint64_t c_encode_acl(struct samples samples, size_t operations) {
    struct packet packet;
    packet_init(&packet);
    uint64_t sum = 0;
    for (size_t index = 0; index < operations; index++) {
        const uint8_t *bytes = samples.bytes + (index & (samples.count - 1)) * samples.length;
        packet_reset(&packet);
        memcpy(packet_append(&packet, samples.length), bytes, samples.length);
        uint8_t *header = packet_prepend(&packet, 4);
        if (header == NULL) continue;
        write16(header, bytes[0]);
        write16(header + 2, (uint16_t)samples.length);
        sum += packet_sum(&packet);
    }
    packet_free(&packet);
    return sum;
}

// Events: the header, then the parameters for the code.

static inline const uint8_t *event_parameters(const uint8_t *bytes, size_t length, uint8_t code) {
    if (length < 2 || (size_t)bytes[1] + 2 != length || bytes[0] != code) return NULL;
    return bytes + 2;
}

static inline uint64_t decode_command_complete(const uint8_t *bytes, size_t length) {
    const uint8_t *parameters = event_parameters(bytes, length, 0x0E);
    if (parameters == NULL || length < 6) return 0;
    return parameters[0] + read16(parameters + 1) + parameters[3];
}

uint64_t c_decode_command_complete(struct samples samples, size_t operations) {
    FOR_EACH_SAMPLE(decode_command_complete(bytes, length))
}

static inline uint64_t decode_completed_packets(const uint8_t *bytes, size_t length) {
    const uint8_t *parameters = event_parameters(bytes, length, 0x13);
    if (parameters == NULL || length < 3 || (size_t)parameters[0] * 4 + 3 != length) return 0;
    uint64_t sum = 0;
    for (size_t offset = 3; offset < length; offset += 4) {
        sum += (read16(bytes + offset) & 0x0FFF) + read16(bytes + offset + 2);
    }
    return sum;
}

uint64_t c_decode_completed_packets(struct samples samples, size_t operations) {
    FOR_EACH_SAMPLE(decode_completed_packets(bytes, length))
}

// Advertising reports, with an iteration over their AD structures.

static inline uint64_t walk_structures(const uint8_t *data, size_t length) {
    uint64_t sum = 0;
    size_t offset = 0;
    while (offset < length) {
        size_t count = data[offset++];
        if (count == 0) break;
        if (count > length - offset) return 0;
        sum += data[offset] + (count - 1) + (count > 1 ? data[offset + 1] : 0);
        offset += count;
    }
    return sum;
}

static inline uint64_t walk_legacy_report(const uint8_t *bytes, size_t length) {
    const uint8_t *parameters = event_parameters(bytes, length, 0x3E);
    if (parameters == NULL || length < 4 || parameters[0] != 0x02) return 0;
    uint8_t reports = parameters[1];
    size_t offset = 4;
    uint64_t sum = 0;
    while (reports-- > 0) {
        if (length - offset < 9) return 0;
        size_t data_length = bytes[offset + 8];
        if (length - offset < 10 + data_length) return 0;
        sum += bytes[offset] + bytes[offset + 1] + read48(bytes + offset + 2);
        sum += walk_structures(bytes + offset + 9, data_length);
        sum += bytes[offset + 9 + data_length];
        offset += 10 + data_length;
    }
    return offset == length ? sum : 0;
}

uint64_t c_walk_legacy_report(struct samples samples, size_t operations) {
    FOR_EACH_SAMPLE(walk_legacy_report(bytes, length))
}

static inline uint64_t walk_extended_report(const uint8_t *bytes, size_t length) {
    const uint8_t *parameters = event_parameters(bytes, length, 0x3E);
    if (parameters == NULL || length < 4 || parameters[0] != 0x0D) return 0;
    uint8_t reports = parameters[1];
    size_t offset = 4;
    uint64_t sum = 0;
    while (reports-- > 0) {
        if (length - offset < 24) return 0;
        const uint8_t *report = bytes + offset;
        size_t data_length = report[23];
        if (length - offset < 24 + data_length) return 0;
        sum += read16(report) + report[2] + read48(report + 3) + report[9] + report[10] + report[11];
        sum += report[13] + read16(report + 14) + report[16] + read48(report + 17);
        sum += walk_structures(report + 24, data_length);
        offset += 24 + data_length;
    }
    return offset == length ? sum : 0;
}

uint64_t c_walk_extended_report(struct samples samples, size_t operations) {
    FOR_EACH_SAMPLE(walk_extended_report(bytes, length))
}
