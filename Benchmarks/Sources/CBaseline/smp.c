// The Security Manager's PDUs, and UUIDs.

#include "internal.h"

struct pairing_request {
    uint8_t io_capability;
    uint8_t out_of_band;
    uint8_t requirements;
    uint8_t key_size;
    uint8_t initiator_keys;
    uint8_t responder_keys;
};

static inline int decode_pairing_request(const uint8_t *bytes, size_t length, struct pairing_request *request) {
    if (length != 7 || bytes[0] != 0x01 || bytes[1] > 4 || bytes[2] > 1 || bytes[4] < 7 || bytes[4] > 16) return -1;
    request->io_capability = bytes[1];
    request->out_of_band = bytes[2];
    request->requirements = bytes[3];
    request->key_size = bytes[4];
    request->initiator_keys = bytes[5];
    request->responder_keys = bytes[6];
    return 0;
}

uint64_t c_decode_pairing_request(struct samples samples, size_t operations) {
    struct pairing_request request;
    FOR_EACH_SAMPLE(
        decode_pairing_request(bytes, length, &request) == 0
            ? request.io_capability + request.out_of_band + request.requirements + request.key_size
                + request.initiator_keys + request.responder_keys
            : 0
    )
}

uint64_t c_encode_pairing_request(struct samples samples, size_t operations) {
    struct packet packet;
    packet_init(&packet);
    uint64_t sum = 0;
    for (size_t index = 0; index < operations; index++) {
        const uint8_t *bytes = samples.bytes + (index & (samples.count - 1)) * samples.length;
        packet_reset(&packet);
        uint8_t *place = packet_append(&packet, 7);
        place[0] = 0x01;
        for (size_t field = 1; field < 7; field++) place[field] = bytes[field];
        sum += packet_sum(&packet);
    }
    packet_free(&packet);
    return sum;
}

struct number128 {
    uint64_t low;
    uint64_t high;
};

static inline struct number128 read128(const uint8_t *bytes) {
    struct number128 number;
    memcpy(&number.low, bytes, 8);
    memcpy(&number.high, bytes + 8, 8);
    return number;
}

static inline int decode_pairing_confirm(const uint8_t *bytes, size_t length, struct number128 *value) {
    if (length != 17 || bytes[0] != 0x03) return -1;
    *value = read128(bytes + 1);
    return 0;
}

uint64_t c_decode_pairing_confirm(struct samples samples, size_t operations) {
    struct number128 value;
    FOR_EACH_SAMPLE(decode_pairing_confirm(bytes, length, &value) == 0 ? value.low + value.high : 0)
}

uint64_t c_encode_pairing_confirm(struct samples samples, size_t operations) {
    struct packet packet;
    packet_init(&packet);
    uint64_t sum = 0;
    for (size_t index = 0; index < operations; index++) {
        const uint8_t *bytes = samples.bytes + (index & (samples.count - 1)) * samples.length;
        struct number128 value = read128(bytes + 1);
        packet_reset(&packet);
        uint8_t *place = packet_append(&packet, 17);
        place[0] = 0x03;
        memcpy(place + 1, &value.low, 8);
        memcpy(place + 9, &value.high, 8);
        sum += packet_sum(&packet);
    }
    packet_free(&packet);
    return sum;
}

uint64_t c_compare_uuids(struct samples samples, size_t operations) {
    uint64_t sum = 0;
    for (size_t index = 0; index < operations; index++) {
        struct number128 left = read128(samples.bytes + (index & (samples.count - 1)) * 16);
        struct number128 right = read128(samples.bytes + (index * 7 & (samples.count - 1)) * 16);
        sum += left.low == right.low && left.high == right.high;
    }
    return sum;
}

// SipHash-1-3 of 16 bytes: suitable for a table keyed by peers' data, and the algorithm of Swift's own hasher.

static inline uint64_t rotate(uint64_t value, int bits) {
    return value << bits | value >> (64 - bits);
}

struct sip_state {
    uint64_t v0, v1, v2, v3;
};

static inline void sip_round(struct sip_state *state) {
    state->v0 += state->v1;
    state->v1 = rotate(state->v1, 13) ^ state->v0;
    state->v0 = rotate(state->v0, 32);
    state->v2 += state->v3;
    state->v3 = rotate(state->v3, 16) ^ state->v2;
    state->v0 += state->v3;
    state->v3 = rotate(state->v3, 21) ^ state->v0;
    state->v2 += state->v1;
    state->v1 = rotate(state->v1, 17) ^ state->v2;
    state->v2 = rotate(state->v2, 32);
}

static inline void sip_word(struct sip_state *state, uint64_t word) {
    state->v3 ^= word;
    sip_round(state);
    state->v0 ^= word;
}

static inline uint64_t sip_hash(struct number128 value, uint64_t key0, uint64_t key1) {
    struct sip_state state = {
        key0 ^ 0x736f6d6570736575, key1 ^ 0x646f72616e646f6d, key0 ^ 0x6c7967656e657261, key1 ^ 0x7465646279746573,
    };
    sip_word(&state, value.high);
    sip_word(&state, value.low);
    sip_word(&state, (uint64_t)16 << 56);
    state.v2 ^= 0xFF;
    sip_round(&state);
    sip_round(&state);
    sip_round(&state);
    return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

uint64_t c_hash_uuids(struct samples samples, size_t operations) {
    FOR_EACH_SAMPLE(length == 16 ? sip_hash(read128(bytes), 1, 2) : 0)
}
