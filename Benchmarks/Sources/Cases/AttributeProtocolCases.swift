import BLEATT
import BLEByteCoding
import BluetoothTypes
import CBaseline
import CCounters

extension BenchmarkCase {
    /// Decoding and encoding of the common Attribute PDUs, at lengths of 3 to 512 bytes.
    static var attributeProtocol: [BenchmarkCase] {
        var cases = fixedPDUs
        for length in [3, 20, 244, 512] { cases += valuePDUs(length) }
        return cases + lists
    }

    private static func handleValue(_ opcode: ATTOpcode, _ length: Int) -> Samples {
        Samples { number in
            [opcode.rawValue, number, 1] + (0..<max(length - 3, 0)).map { UInt8(truncatingIfNeeded: $0) &+ number }
        }
    }

    private static var fixedPDUs: [BenchmarkCase] {
        let reads = Samples { [0x0A, $0, 1] }
        let blobs = Samples { [0x0C, $0, 1, $0, 0] }
        let errors = Samples { [0x01, 0x0A, $0, 1, 0x05] }
        let types = Samples { [0x08, $0, 0, 0xFF, 0xFF, 0x03, 0x28] }
        let writeResponses = Samples { _ in [0x13] }
        return [
            codec("att/read-request/decode", reads, baseline: c_decode_handle_pdu) { samples, count in
                samples.forEach(count) { bytes in
                    guard let pdu = try? ReadRequest(decoding: bytes) else { return 0 }
                    return UInt64(pdu.handle.rawValue)
                }
            },
            codec("att/read-request/encode", reads, baseline: c_encode_handle_pdu) { samples, count in
                samples.encode(count) { bytes, buffer in
                    ReadRequest(handle: handle(bytes)).encode(into: &buffer)
                }
            },
            codec("att/read-blob-request/decode", blobs, baseline: c_decode_two_word_pdu) { samples, count in
                samples.forEach(count) { bytes in
                    guard let pdu = try? ReadBlobRequest(decoding: bytes) else { return 0 }
                    return UInt64(pdu.handle.rawValue) &+ UInt64(pdu.offset)
                }
            },
            codec("att/read-blob-request/encode", blobs, baseline: c_encode_two_word_pdu) { samples, count in
                samples.encode(count) { bytes, buffer in
                    ReadBlobRequest(handle: handle(bytes), offset: word(bytes, 3)).encode(into: &buffer)
                }
            },
            codec("att/error-response/decode", errors, baseline: c_decode_error_response) { samples, count in
                samples.forEach(count) { bytes in
                    guard let pdu = try? ErrorResponse(decoding: bytes) else { return 0 }
                    return UInt64(pdu.requestOpcode) &+ UInt64(pdu.handle.rawValue) &+ UInt64(pdu.error.rawValue)
                }
            },
            codec("att/error-response/encode", errors, baseline: c_encode_error_response) { samples, count in
                samples.encode(count) { bytes, buffer in
                    ErrorResponse(
                        requestOpcode: bytes[checked: 1] ?? 0,
                        handle: AttributeHandle(word(bytes, 2)),
                        error: .insufficientAuthentication
                    ).encode(into: &buffer)
                }
            },
            codec("att/read-by-type-request/decode", types, baseline: c_decode_range_uuid16_pdu) { samples, count in
                samples.forEach(count) { bytes in
                    guard let pdu = try? ReadByTypeRequest(decoding: bytes) else { return 0 }
                    return UInt64(pdu.range.start.rawValue) &+ UInt64(pdu.range.end.rawValue)
                        &+ UInt64(truncatingIfNeeded: pdu.type.value >> 96)
                }
            },
            codec("att/read-by-type-request/encode", types, baseline: c_encode_range_uuid16_pdu) { samples, count in
                samples.encode(count) { bytes, buffer in
                    ReadByTypeRequest(
                        range: HandleRange(start: handle(bytes), end: AttributeHandle(word(bytes, 3))),
                        type: BluetoothUUID(word(bytes, 5))
                    ).encode(into: &buffer)
                }
            },
            codec("att/write-response/decode", writeResponses, baseline: c_decode_opcode_pdu) { samples, count in
                samples.forEach(count) { bytes in (try? WriteResponse(decoding: bytes)) == nil ? 0 : 1 }
            },
            codec("att/write-response/encode", writeResponses, baseline: c_encode_opcode_pdu) { samples, count in
                samples.encode(count) { _, buffer in WriteResponse().encode(into: &buffer) }
            },
        ]
    }

    /// PDUs that end with a value; `length` is that of the whole PDU, in bytes.
    private static func valuePDUs(_ length: Int) -> [BenchmarkCase] {
        let responses = Samples { number in [0x0B] + [UInt8](repeating: number, count: length - 1) }
        return [
            codec("att/read-response-\(length)/decode", responses, baseline: c_decode_value_pdu) { samples, count in
                samples.forEach(count) { bytes in
                    guard let pdu = try? ReadResponse(decoding: bytes) else { return 0 }
                    return trace(pdu.value)
                }
            },
            codec("att/read-response-\(length)/encode", responses, baseline: c_encode_value_pdu) { samples, count in
                samples.encode(count) { bytes, buffer in
                    ReadResponse(value: bytes.extracting(droppingFirst: 1)).encode(into: &buffer)
                }
            },
            codec(
                "att/write-request-\(length)/decode",
                handleValue(.writeRequest, length),
                baseline: c_decode_handle_value_pdu
            ) { samples, count in
                samples.forEach(count) { bytes in
                    guard let pdu = try? WriteRequest(decoding: bytes) else { return 0 }
                    return UInt64(pdu.handle.rawValue) &+ trace(pdu.value)
                }
            },
            codec(
                "att/write-request-\(length)/encode",
                handleValue(.writeRequest, length),
                baseline: c_encode_handle_value_pdu
            ) { samples, count in
                samples.encode(count) { bytes, buffer in
                    WriteRequest(handle: handle(bytes), value: bytes.extracting(droppingFirst: 3))
                        .encode(into: &buffer)
                }
            },
            codec(
                "att/write-command-\(length)/decode",
                handleValue(.writeCommand, length),
                baseline: c_decode_handle_value_pdu
            ) { samples, count in
                samples.forEach(count) { bytes in
                    guard let pdu = try? WriteCommand(decoding: bytes) else { return 0 }
                    return UInt64(pdu.handle.rawValue) &+ trace(pdu.value)
                }
            },
            codec(
                "att/write-command-\(length)/encode",
                handleValue(.writeCommand, length),
                baseline: c_encode_handle_value_pdu
            ) { samples, count in
                samples.encode(count) { bytes, buffer in
                    WriteCommand(handle: handle(bytes), value: bytes.extracting(droppingFirst: 3))
                        .encode(into: &buffer)
                }
            },
            codec(
                "att/notification-\(length)/decode",
                handleValue(.handleValueNotification, length),
                baseline: c_decode_handle_value_pdu
            ) { samples, count in
                samples.forEach(count) { bytes in
                    guard let pdu = try? HandleValueNotification(decoding: bytes) else { return 0 }
                    return UInt64(pdu.handle.rawValue) &+ trace(pdu.value)
                }
            },
            codec(
                "att/notification-\(length)/encode",
                handleValue(.handleValueNotification, length),
                baseline: c_encode_handle_value_pdu
            ) { samples, count in
                samples.encode(count) { bytes, buffer in
                    HandleValueNotification(handle: handle(bytes), value: bytes.extracting(droppingFirst: 3))
                        .encode(into: &buffer)
                }
            },
        ]
    }

    /// Responses with lists, read to the end.
    private static var lists: [BenchmarkCase] {
        let information = Samples { number in
            [0x05, 0x01] + (0..<5).flatMap { [UInt8($0), number, 0x00, 0x28] }
        }
        let byType = Samples { number in
            [0x09, 7] + (0..<3).flatMap { [UInt8($0), number, 0x0A, UInt8($0), 0, 0xE1, 0xFF] }
        }
        let byGroup = Samples { number in
            [0x11, 6] + (0..<3).flatMap { [UInt8($0), number, UInt8($0) + 9, number, 0xE0, 0xFF] }
        }
        return [
            codec("att/find-information-response/walk", information, baseline: c_walk_find_information) {
                samples,
                count in
                samples.forEach(count) { bytes in
                    guard let pdu = try? FindInformationResponse(decoding: bytes) else { return 0 }
                    var sum: UInt64 = 0
                    var entries = pdu.entries
                    while let entry = entries.next() {
                        sum &+= UInt64(entry.handle.rawValue) &+ UInt64(truncatingIfNeeded: entry.type.value >> 96)
                    }
                    return sum
                }
            },
            codec("att/read-by-type-response/walk", byType, baseline: c_walk_read_by_type) { samples, count in
                samples.forEach(count) { bytes in
                    guard let pdu = try? ReadByTypeResponse(decoding: bytes) else { return 0 }
                    var sum: UInt64 = 0
                    var entries = pdu.entries
                    while let entry = entries.next() { sum &+= UInt64(entry.handle.rawValue) &+ trace(entry.value) }
                    return sum
                }
            },
            codec("att/read-by-group-type-response/walk", byGroup, baseline: c_walk_read_by_group_type) {
                samples,
                count in
                samples.forEach(count) { bytes in
                    guard let pdu = try? ReadByGroupTypeResponse(decoding: bytes) else { return 0 }
                    var sum: UInt64 = 0
                    var entries = pdu.entries
                    while let entry = entries.next() {
                        sum &+=
                            UInt64(entry.handle.rawValue) &+ UInt64(entry.endGroupHandle.rawValue)
                            &+ trace(entry.value)
                    }
                    return sum
                }
            },
        ]
    }
}

extension Samples {
    /// Encodes once for each packet, into one buffer that is reused.
    @inline(__always)
    func encode(_ operations: Int, _ body: (RawSpan, inout PacketBuffer) -> Void) {
        var buffer = PacketBuffer()
        forEach(operations) { bytes in
            buffer.reset()
            body(bytes, &buffer)
            return UInt64(buffer.count)
        }
    }
}

@inline(__always)
func word(_ bytes: RawSpan, _ offset: Int) -> UInt16 {
    UInt16(bytes[checked: offset] ?? 0) | UInt16(bytes[checked: offset + 1] ?? 0) << 8
}

@inline(__always)
func handle(_ bytes: RawSpan) -> AttributeHandle {
    AttributeHandle(word(bytes, 1))
}
