// The PDUs of the Attribute Protocol: bounds and opcode are checked, fields are read in place.

#include "internal.h"

#define ENCODE(operation)                        \
    struct packet packet;                        \
    packet_init(&packet);                        \
    uint64_t sum = 0;                            \
    for (size_t index = 0; index < operations; index++) {                            \
        const uint8_t *bytes = samples.bytes + (index & (samples.count - 1)) * samples.length; \
        size_t length = samples.length;          \
        packet_reset(&packet);                   \
        operation(&packet, bytes, length);       \
        sum += packet_sum(&packet);              \
    }                                            \
    packet_free(&packet);                        \
    return sum;

// Opcode and handle: a Read Request.

struct handle_pdu {
    uint16_t handle;
};

static inline int decode_handle_pdu(const uint8_t *bytes, size_t length, struct handle_pdu *pdu) {
    if (length != 3 || bytes[0] != 0x0A) return -1;
    pdu->handle = read16(bytes + 1);
    return 0;
}

uint64_t c_decode_handle_pdu(struct samples samples, size_t operations) {
    struct handle_pdu pdu;
    FOR_EACH_SAMPLE(decode_handle_pdu(bytes, length, &pdu) == 0 ? pdu.handle : 0)
}

static inline void encode_handle_pdu(struct packet *packet, const uint8_t *bytes, size_t length) {
    uint8_t *place = packet_append(packet, 3);
    place[0] = 0x0A;
    write16(place + 1, read16(bytes + 1));
}

uint64_t c_encode_handle_pdu(struct samples samples, size_t operations) {
    ENCODE(encode_handle_pdu)
}

// Opcode, handle and value: writes, notifications, indications.

struct handle_value_pdu {
    uint16_t handle;
    const uint8_t *value;
    size_t length;
};

static inline int decode_handle_value_pdu(
    const uint8_t *bytes, size_t length, uint8_t opcode, struct handle_value_pdu *pdu
) {
    if (length < 3 || bytes[0] != opcode) return -1;
    pdu->handle = read16(bytes + 1);
    pdu->value = bytes + 3;
    pdu->length = length - 3;
    return 0;
}

uint64_t c_decode_handle_value_pdu(struct samples samples, size_t operations) {
    struct handle_value_pdu pdu;
    uint8_t opcode = samples.bytes[0];
    FOR_EACH_SAMPLE(
        decode_handle_value_pdu(bytes, length, opcode, &pdu) == 0 ? pdu.handle + pdu.length + pdu.value[0] : 0
    )
}

static inline void encode_handle_value_pdu(struct packet *packet, const uint8_t *bytes, size_t length) {
    uint8_t *place = packet_append(packet, length);
    place[0] = bytes[0];
    write16(place + 1, read16(bytes + 1));
    memcpy(place + 3, bytes + 3, length - 3);
}

uint64_t c_encode_handle_value_pdu(struct samples samples, size_t operations) {
    ENCODE(encode_handle_value_pdu)
}

// Opcode and value: a Read Response.

uint64_t c_decode_value_pdu(struct samples samples, size_t operations) {
    FOR_EACH_SAMPLE(length >= 1 && bytes[0] == 0x0B ? length - 1 + (length > 1 ? bytes[1] : 0) : 0)
}

static inline void encode_value_pdu(struct packet *packet, const uint8_t *bytes, size_t length) {
    uint8_t *place = packet_append(packet, length);
    place[0] = 0x0B;
    memcpy(place + 1, bytes + 1, length - 1);
}

uint64_t c_encode_value_pdu(struct samples samples, size_t operations) {
    ENCODE(encode_value_pdu)
}

// An opcode alone: a Write Response.

uint64_t c_decode_opcode_pdu(struct samples samples, size_t operations) {
    FOR_EACH_SAMPLE(length == 1 && bytes[0] == 0x13 ? index : 0)
}

static inline void encode_opcode_pdu(struct packet *packet, const uint8_t *bytes, size_t length) {
    *packet_append(packet, 1) = 0x13;
}

uint64_t c_encode_opcode_pdu(struct samples samples, size_t operations) {
    ENCODE(encode_opcode_pdu)
}

// Opcode and two words: a Read Blob Request.

struct two_word_pdu {
    uint16_t first;
    uint16_t second;
};

static inline int decode_two_word_pdu(const uint8_t *bytes, size_t length, struct two_word_pdu *pdu) {
    if (length != 5 || bytes[0] != 0x0C) return -1;
    pdu->first = read16(bytes + 1);
    pdu->second = read16(bytes + 3);
    return 0;
}

uint64_t c_decode_two_word_pdu(struct samples samples, size_t operations) {
    struct two_word_pdu pdu;
    FOR_EACH_SAMPLE(decode_two_word_pdu(bytes, length, &pdu) == 0 ? pdu.first + pdu.second : 0)
}

static inline void encode_two_word_pdu(struct packet *packet, const uint8_t *bytes, size_t length) {
    uint8_t *place = packet_append(packet, 5);
    place[0] = 0x0C;
    write16(place + 1, read16(bytes + 1));
    write16(place + 3, read16(bytes + 3));
}

uint64_t c_encode_two_word_pdu(struct samples samples, size_t operations) {
    ENCODE(encode_two_word_pdu)
}

// Error Response.

struct error_response {
    uint8_t request;
    uint16_t handle;
    uint8_t code;
};

static inline int decode_error_response(const uint8_t *bytes, size_t length, struct error_response *pdu) {
    if (length != 5 || bytes[0] != 0x01) return -1;
    pdu->request = bytes[1];
    pdu->handle = read16(bytes + 2);
    pdu->code = bytes[4];
    return 0;
}

uint64_t c_decode_error_response(struct samples samples, size_t operations) {
    struct error_response pdu;
    FOR_EACH_SAMPLE(decode_error_response(bytes, length, &pdu) == 0 ? pdu.request + pdu.handle + pdu.code : 0)
}

static inline void encode_error_response(struct packet *packet, const uint8_t *bytes, size_t length) {
    uint8_t *place = packet_append(packet, 5);
    place[0] = 0x01;
    place[1] = bytes[1];
    write16(place + 2, read16(bytes + 2));
    place[4] = bytes[4];
}

uint64_t c_encode_error_response(struct samples samples, size_t operations) {
    ENCODE(encode_error_response)
}

// Opcode, a range of handles and a type of 16 bits: a Read By Type Request.

struct range_uuid16_pdu {
    uint16_t start;
    uint16_t end;
    uint16_t type;
};

static inline int decode_range_uuid16_pdu(const uint8_t *bytes, size_t length, struct range_uuid16_pdu *pdu) {
    if (length != 7 || bytes[0] != 0x08) return -1;
    pdu->start = read16(bytes + 1);
    pdu->end = read16(bytes + 3);
    pdu->type = read16(bytes + 5);
    return 0;
}

uint64_t c_decode_range_uuid16_pdu(struct samples samples, size_t operations) {
    struct range_uuid16_pdu pdu;
    FOR_EACH_SAMPLE(decode_range_uuid16_pdu(bytes, length, &pdu) == 0 ? pdu.start + pdu.end + pdu.type : 0)
}

static inline void encode_range_uuid16_pdu(struct packet *packet, const uint8_t *bytes, size_t length) {
    uint8_t *place = packet_append(packet, 7);
    place[0] = 0x08;
    write16(place + 1, read16(bytes + 1));
    write16(place + 3, read16(bytes + 3));
    write16(place + 5, read16(bytes + 5));
}

uint64_t c_encode_range_uuid16_pdu(struct samples samples, size_t operations) {
    ENCODE(encode_range_uuid16_pdu)
}

// Lists.

static inline uint64_t walk_find_information(const uint8_t *bytes, size_t length) {
    if (length < 2 || bytes[0] != 0x05) return 0;
    size_t entry = bytes[1] == 1 ? 4 : bytes[1] == 2 ? 18 : 0;
    if (entry == 0 || length == 2 || (length - 2) % entry != 0) return 0;
    uint64_t sum = 0;
    for (size_t offset = 2; offset < length; offset += entry) {
        sum += read16(bytes + offset) + read16(bytes + offset + 2);
    }
    return sum;
}

uint64_t c_walk_find_information(struct samples samples, size_t operations) {
    FOR_EACH_SAMPLE(walk_find_information(bytes, length))
}

static inline uint64_t walk_read_by_type(const uint8_t *bytes, size_t length) {
    if (length < 2 || bytes[0] != 0x09) return 0;
    size_t entry = bytes[1];
    if (entry < 2 || length == 2 || (length - 2) % entry != 0) return 0;
    uint64_t sum = 0;
    for (size_t offset = 2; offset < length; offset += entry) {
        sum += read16(bytes + offset) + (entry - 2) + (entry > 2 ? bytes[offset + 2] : 0);
    }
    return sum;
}

uint64_t c_walk_read_by_type(struct samples samples, size_t operations) {
    FOR_EACH_SAMPLE(walk_read_by_type(bytes, length))
}

static inline uint64_t walk_read_by_group_type(const uint8_t *bytes, size_t length) {
    if (length < 2 || bytes[0] != 0x11) return 0;
    size_t entry = bytes[1];
    if (entry < 4 || length == 2 || (length - 2) % entry != 0) return 0;
    uint64_t sum = 0;
    for (size_t offset = 2; offset < length; offset += entry) {
        sum += read16(bytes + offset) + read16(bytes + offset + 2) + (entry - 4) + (entry > 4 ? bytes[offset + 4] : 0);
    }
    return sum;
}

uint64_t c_walk_read_by_group_type(struct samples samples, size_t operations) {
    FOR_EACH_SAMPLE(walk_read_by_group_type(bytes, length))
}
