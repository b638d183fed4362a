import BLEByteCoding
import BLESMP
import BluetoothTypes
import CBaseline
import CCounters

extension BenchmarkCase {
    /// The Security Manager's PDUs.
    static var securityManager: [BenchmarkCase] {
        let requests = Samples { [0x01, $0 & 3, 0, 0x0D, 16, 7, 7] }
        let confirms = Samples { number in [0x03] + (0..<16).map { $0 &+ number } }
        return [
            codec(
                "smp/pairing-request/decode",
                requests,
                budget: .withoutAllocation,
                baseline: c_decode_pairing_request
            ) { samples, count in
                samples.forEach(count) { bytes in
                    guard case .pairingRequest(let request)? = try? SecurityManagerPDU(decoding: bytes) else {
                        return 0
                    }
                    let features = request.features
                    return UInt64(features.ioCapability.rawValue) &+ UInt64(features.maximumKeySize)
                        &+ UInt64(features.authenticationRequirements.rawValue)
                        &+ UInt64(features.initiatorKeys.rawValue) &+ UInt64(features.responderKeys.rawValue)
                }
            },
            codec(
                "smp/pairing-request/encode",
                requests,
                budget: .withoutAllocation,
                baseline: c_encode_pairing_request
            ) { samples, count in
                samples.encode(count) { bytes, buffer in
                    PairingRequest(
                        features: PairingFeatures(
                            ioCapability: IOCapability(rawValue: bytes[checked: 1] ?? 0) ?? .noInputNoOutput,
                            hasOutOfBandData: bytes[checked: 2] == 1,
                            authenticationRequirements: .init(rawValue: bytes[checked: 3] ?? 0),
                            maximumKeySize: bytes[checked: 4] ?? 16,
                            initiatorKeys: .init(rawValue: bytes[checked: 5] ?? 0),
                            responderKeys: .init(rawValue: bytes[checked: 6] ?? 0)
                        )
                    ).encode(into: &buffer)
                }
            },
            codec(
                "smp/pairing-confirm/decode",
                confirms,
                budget: .withoutAllocation,
                baseline: c_decode_pairing_confirm
            ) { samples, count in
                samples.forEach(count) { bytes in
                    guard case .pairingConfirm(let pdu)? = try? SecurityManagerPDU(decoding: bytes) else { return 0 }
                    return UInt64(truncatingIfNeeded: pdu.value) &+ UInt64(truncatingIfNeeded: pdu.value >> 64)
                }
            },
            codec(
                "smp/pairing-confirm/encode",
                confirms,
                budget: .withoutAllocation,
                baseline: c_encode_pairing_confirm
            ) { samples, count in
                samples.encode(count) { bytes, buffer in
                    var reader = ByteReader(bytes)
                    _ = try? reader.readUInt8()
                    PairingConfirm(value: (try? reader.readUInt128()) ?? 0).encode(into: &buffer)
                }
            },
        ]
    }

    /// UUIDs as keys.
    static var identifiers: [BenchmarkCase] {
        let octets = Samples { number in (0..<16).map { $0 &* 7 &+ number / 4 } }
        let uuids = (0..<Samples.count).map { index -> BluetoothUUID in
            let bytes = Array(octets.bytes[index * 16..<index * 16 + 16])
            return (try? BluetoothUUID(decoding: bytes.rawSpan)) ?? BluetoothUUID(UInt16(index))
        }
        return [
            codec("uuid/compare", octets, budget: .withoutAllocation, baseline: c_compare_uuids) { _, count in
                var sum: UInt64 = 0
                for index in 0..<count where uuids[index & 15] == uuids[index &* 7 & 15] { sum &+= 1 }
                keep(sum)
            },
            codec("uuid/hash", octets, budget: .withoutAllocation, baseline: c_hash_uuids) { _, count in
                var sum: UInt64 = 0
                for index in 0..<count {
                    var hasher = Hasher()
                    uuids[index & 15].hash(into: &hasher)
                    sum &+= UInt64(bitPattern: Int64(hasher.finalize()))
                }
                keep(sum)
            },
        ]
    }
}
