import BLEByteCoding
import BLECryptography
import BLESMP
import BluetoothTypes

import struct BLEVirtualController.SeededGenerator

/// Fuzzes two ends of a pairing with the packets of a script. A packet with an odd choice goes to the central, one with
/// an even choice to the peripheral. The packets between both ends are delivered as well, unless the choice says that
/// they are lost.
func fuzzSecurity(_ input: [UInt8]) {
    let one = DeviceAddress(0xC0_0000_0000_01, isRandom: true)
    let other = DeviceAddress(0xC0_0000_0000_02, isRandom: true)
    var meeting = FuzzedMeeting(
        central: SecurityChannel(
            role: .central,
            ownAddress: one,
            peerAddress: other,
            identity: LocalIdentity(address: one, resolvingKey: 1),
            functions: SwiftCryptography()
        ),
        peripheral: SecurityChannel(
            role: .peripheral,
            ownAddress: other,
            peerAddress: one,
            identity: LocalIdentity(address: other, resolvingKey: 2),
            functions: SwiftCryptography()
        )
    )
    meeting.run(Script(input).packets)
}

private struct FuzzedMeeting {
    var central: SecurityChannel<SwiftCryptography>
    var peripheral: SecurityChannel<SwiftCryptography>
    var random = SeededGenerator(seed: 1)
    var now = Instant(nanoseconds: 0)
    /// The packets on their way: whether to the central, and the bytes.
    var underWay: [(toCentral: Bool, octets: [UInt8])] = []
    /// The last passkey that one of the two ends has shown.
    var passkey: UInt32 = 0

    mutating func run(_ packets: [Script.Packet]) {
        for packet in packets {
            now = now + .milliseconds(Int(packet.delay) * 200)
            take(central.advance(to: now), ofCentral: true)
            take(peripheral.advance(to: now), ofCentral: false)
            let isForCentral = packet.choice & 1 != 0
            switch packet.choice >> 1 & 7 {
            case 0: take(central.start(at: now, random: &random), ofCentral: true)
            case 1: take(peripheral.start(at: now, random: &random), ofCentral: false)
            case 2 where !underWay.isEmpty: underWay.removeFirst()
            case 3: configure(packet)
            case 4: answer(packet, ofCentral: isForCentral)
            default: deliver(packet.octets, toCentral: isForCentral)
            }
            for _ in 0..<Int(packet.choice >> 4) where !underWay.isEmpty {
                let next = underWay.removeFirst()
                deliver(next.octets, toCentral: next.toCentral)
            }
            if underWay.count > 64 { underWay.removeFirst(32) }
        }
    }

    private mutating func configure(_ packet: Script.Packet) {
        var parameters = PairingParameters()
        parameters.ioCapability = IOCapability(rawValue: (packet.octets.first ?? 0) % 5) ?? .noInputNoOutput
        let flags = packet.octets.dropFirst().first ?? 0
        parameters.requiresAuthentication = flags & 1 != 0
        parameters.offersSecureConnections = flags & 2 == 0
        parameters.requiresSecureConnections = flags & 6 == 4
        parameters.bonds = flags & 8 == 0
        parameters.allowsDebugKey = flags & 0x10 != 0
        parameters.delaysJustWorksConsent = flags & 0x80 != 0
        if flags & 0x20 != 0 {
            parameters.peerOutOfBandData = .temporaryKey(7)
            parameters.ownOutOfBandData = .temporaryKey(7)
        } else if flags & 0x40 != 0 {
            parameters.peerOutOfBandData = .secureConnections(confirm: 1, random: 2)
        }
        parameters.minimumKeySize = 7
        parameters.maximumKeySize = 7 + (packet.octets.dropFirst(2).first ?? 9) % 10
        if !central.isPairing, packet.choice & 1 != 0 { central.parameters = parameters }
        if !peripheral.isPairing, packet.choice & 1 == 0 { peripheral.parameters = parameters }
    }

    private mutating func deliver(_ octets: [UInt8], toCentral: Bool) {
        if toCentral {
            take(central.receive(octets.rawSpan, at: now, random: &random), ofCentral: true)
        } else {
            take(peripheral.receive(octets.rawSpan, at: now, random: &random), ofCentral: false)
        }
    }

    private mutating func answer(_ packet: Script.Packet, ofCentral: Bool) {
        let answer: PairingAnswer =
            switch packet.octets.first ?? 0 {
            case 0: .refuse
            case 1: .passkey(UInt32(packet.octets.last ?? 0))
            case 2: .passkey(passkey)
            default: .accept
            }
        if ofCentral {
            take(central.answer(answer, at: now, random: &random), ofCentral: true)
        } else {
            take(peripheral.answer(answer, at: now, random: &random), ofCentral: false)
        }
    }

    private mutating func take(_ steps: [PairingStep], ofCentral: Bool) {
        for step in steps {
            switch step {
            case .send(let octets):
                require(octets.count <= 65, "a PDU of \(octets.count) bytes")
                underWay.append((!ofCentral, octets))
            case .encrypt(let key): encrypted(key.strength)
            case .ask(.showPasskey(let shown)):
                require(shown <= 999_999, "a passkey of \(shown)")
                passkey = shown
            case .completed(let outcome):
                require((7...16).contains(outcome.strength.keySize), "a key of \(outcome.strength.keySize) bytes")
                require(
                    !outcome.strength.isAuthenticated || outcome.model != .justWorks,
                    "a key that is said to be authenticated, though nobody was asked"
                )
            default: break
            }
        }
    }

    private mutating func encrypted(_ strength: KeyStrength) {
        take(central.encryptionChanged(to: strength, at: now, random: &random), ofCentral: true)
        take(peripheral.encryptionChanged(to: strength, at: now, random: &random), ofCentral: false)
    }
}
