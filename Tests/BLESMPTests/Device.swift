import BLEByteCoding
import BLESMP
import BluetoothTypes

import struct BLEVirtualController.SeededGenerator

/// One device. The test simulates its peer.
struct Device {
    var channel: Channel
    var random = SeededGenerator(seed: 4711)
    var now = Instant(nanoseconds: 5)

    init(_ role: Channel.Role, _ change: (inout PairingParameters) -> Void = { _ in }) {
        var parameters = PairingParameters()
        change(&parameters)
        channel = Party(role, parameters, seed: 1).channel
    }

    mutating func start() -> [PairingStep] { channel.start(at: now, random: &random) }

    mutating func receive(_ pdu: [UInt8]) -> [PairingStep] {
        channel.receive(pdu.rawSpan, at: now, random: &random)
    }

    mutating func answer(_ answer: PairingAnswer) -> [PairingStep] {
        channel.answer(answer, at: now, random: &random)
    }

    mutating func press(_ kind: KeypressNotification.Kind) -> [PairingStep] {
        channel.pressed(kind, at: now, random: &random)
    }

    mutating func encryptionChanged(to strength: KeyStrength?) -> [PairingStep] {
        channel.encryptionChanged(to: strength, at: now, random: &random)
    }

    mutating func advance(by duration: Duration) -> [PairingStep] {
        now = now + duration
        return channel.advance(to: now)
    }

    /// Returns a central or peripheral that has agreed with its peer on a way to pair, and the PDUs that it has sent so
    /// far.
    static func agreed(
        _ role: Channel.Role,
        with peer: [UInt8],
        _ change: (inout PairingParameters) -> Void = { _ in }
    ) -> (Device, sent: [[UInt8]]) {
        var device = Device(role, change)
        var steps = role == .central ? device.start() : []
        steps += device.receive(peer)
        steps += device.answer(.accept)
        return (device, steps.sent)
    }
}

extension [PairingStep] {
    /// The PDUs to send.
    var sent: [[UInt8]] {
        compactMap { if case .send(let pdu) = $0 { pdu } else { nil } }
    }

    /// Returns the steps of a device that ends a pairing for a reason.
    static func ending(_ reason: PairingFailedReason) -> [PairingStep] {
        [.send([0x05, reason.rawValue]), .failed(.ended(reason))]
    }
}
