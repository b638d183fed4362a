#ifndef BASELINE_INTERNAL_H
#define BASELINE_INTERNAL_H

#include "baseline.h"

#include <stdlib.h>
#include <string.h>

/// Runs `operation`, an expression of `bytes` and `length`, over the samples.
#define FOR_EACH_SAMPLE(operation)                                                   \
    uint64_t sum = 0;                                                                \
    for (size_t index = 0; index < operations; index++) {                            \
        const uint8_t *bytes = samples.bytes + (index & (samples.count - 1)) * samples.length; \
        size_t length = samples.length;                                              \
        sum += (operation);                                                          \
    }                                                                                \
    return sum;

/// An outbound packet with room for headers before it; it grows if necessary.
struct packet {
    uint8_t *data;
    size_t capacity;
    size_t start;
    size_t end;
};

enum { headroom = 16 };

void packet_init(struct packet *packet);
void packet_grow(struct packet *packet, size_t needed);
void packet_free(struct packet *packet);

static inline void packet_reset(struct packet *packet) {
    packet->start = headroom;
    packet->end = headroom;
}

static inline uint8_t *packet_append(struct packet *packet, size_t count) {
    if (packet->capacity - packet->end < count) packet_grow(packet, packet->end + count);
    uint8_t *place = packet->data + packet->end;
    packet->end += count;
    return place;
}

static inline uint8_t *packet_prepend(struct packet *packet, size_t count) {
    if (packet->start < count) return NULL;
    packet->start -= count;
    return packet->data + packet->start;
}

static inline uint64_t packet_sum(const struct packet *packet) {
    __asm__ volatile("" : : "r"(packet->data) : "memory");
    return packet->end - packet->start;
}

static inline uint16_t read16(const uint8_t *bytes) {
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static inline void write16(uint8_t *bytes, uint16_t value) {
    bytes[0] = (uint8_t)value;
    bytes[1] = (uint8_t)(value >> 8);
}

static inline uint64_t read48(const uint8_t *bytes) {
    uint32_t low;
    uint16_t high;
    memcpy(&low, bytes, 4);
    memcpy(&high, bytes + 4, 2);
    return low | (uint64_t)high << 32;
}

#endif
