#ifndef BASELINE_H
#define BASELINE_H

#include <stddef.h>
#include <stdint.h>

/// Packets of one length, one after the other.
struct samples {
    const uint8_t *bytes;
    size_t length;
    /// The number of packets; a power of two.
    size_t count;
};

/// Performs an operation on one packet after the other, a number of times; returns the sum of the results.
typedef uint64_t (*baseline)(struct samples samples, size_t operations);

// Attribute Protocol.
uint64_t c_decode_handle_pdu(struct samples samples, size_t operations);
uint64_t c_encode_handle_pdu(struct samples samples, size_t operations);
uint64_t c_decode_handle_value_pdu(struct samples samples, size_t operations);
uint64_t c_encode_handle_value_pdu(struct samples samples, size_t operations);
uint64_t c_decode_value_pdu(struct samples samples, size_t operations);
uint64_t c_encode_value_pdu(struct samples samples, size_t operations);
uint64_t c_decode_opcode_pdu(struct samples samples, size_t operations);
uint64_t c_encode_opcode_pdu(struct samples samples, size_t operations);
uint64_t c_decode_two_word_pdu(struct samples samples, size_t operations);
uint64_t c_encode_two_word_pdu(struct samples samples, size_t operations);
uint64_t c_decode_error_response(struct samples samples, size_t operations);
uint64_t c_encode_error_response(struct samples samples, size_t operations);
uint64_t c_decode_range_uuid16_pdu(struct samples samples, size_t operations);
uint64_t c_encode_range_uuid16_pdu(struct samples samples, size_t operations);
uint64_t c_walk_find_information(struct samples samples, size_t operations);
uint64_t c_walk_read_by_type(struct samples samples, size_t operations);
uint64_t c_walk_read_by_group_type(struct samples samples, size_t operations);

// L2CAP and HCI.
uint64_t c_decode_l2cap_frame(struct samples samples, size_t operations);
uint64_t c_encode_l2cap_frame(struct samples samples, size_t operations);
uint64_t c_decode_acl(struct samples samples, size_t operations);
uint64_t c_encode_acl(struct samples samples, size_t operations);
uint64_t c_decode_command_complete(struct samples samples, size_t operations);
uint64_t c_decode_completed_packets(struct samples samples, size_t operations);
uint64_t c_walk_legacy_report(struct samples samples, size_t operations);
uint64_t c_walk_extended_report(struct samples samples, size_t operations);

// Security Manager.
uint64_t c_decode_pairing_request(struct samples samples, size_t operations);
uint64_t c_encode_pairing_request(struct samples samples, size_t operations);
uint64_t c_decode_pairing_confirm(struct samples samples, size_t operations);
uint64_t c_encode_pairing_confirm(struct samples samples, size_t operations);

// UUIDs of 16 bytes.
uint64_t c_compare_uuids(struct samples samples, size_t operations);
uint64_t c_hash_uuids(struct samples samples, size_t operations);

#endif
