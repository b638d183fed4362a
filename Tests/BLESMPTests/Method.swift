import BLECryptography
import BLESMP
import BluetoothTypes

import struct BLEVirtualController.SeededGenerator

/// A way in which two devices pair, and its expected result.
struct Method: Sendable, CustomStringConvertible {
    let name: String
    let isSecureConnections: Bool
    /// The model as the central sees it.
    let model: AssociationModel
    var central: PairingParameters
    var peripheral: PairingParameters
    /// The passkey that is typed if both sides type one.
    var typed: UInt32?

    var description: String { "\(isSecureConnections ? "Secure Connections" : "legacy"), \(name)" }

    /// The same model as the peripheral sees it.
    var modelOfPeripheral: AssociationModel {
        switch model {
        case .passkeyShownHere: .passkeyTypedHere
        case .passkeyTypedHere: .passkeyShownHere
        default: model
        }
    }

    func meeting(seed: UInt64 = 1) -> Meeting {
        var meeting = Meeting(central: central, peripheral: peripheral, seed: seed)
        meeting.typed = typed
        return meeting
    }

    init(
        _ name: String,
        secure: Bool,
        _ model: AssociationModel,
        _ central: IOCapability = .noInputNoOutput,
        _ peripheral: IOCapability = .noInputNoOutput
    ) {
        self.name = name
        isSecureConnections = secure
        self.model = model
        self.central = PairingParameters()
        self.peripheral = PairingParameters()
        self.central.ioCapability = central
        self.peripheral.ioCapability = peripheral
        self.peripheral.offersSecureConnections = secure
        if model == .passkeyTypedOnBoth { typed = 918_273 }
    }

    /// Each association model, by LE legacy pairing and by LE Secure Connections.
    static let all: [Method] = [
        Method("just works", secure: false, .justWorks),
        Method("passkey shown by the central", secure: false, .passkeyShownHere, .displayOnly, .keyboardOnly),
        Method("passkey shown by the peripheral", secure: false, .passkeyTypedHere, .keyboardOnly, .displayYesNo),
        Method("passkey typed on both", secure: false, .passkeyTypedOnBoth, .keyboardOnly, .keyboardOnly),
        legacyOutOfBand,
        Method("just works", secure: true, .justWorks),
        Method("passkey shown by the central", secure: true, .passkeyShownHere, .displayOnly, .keyboardDisplay),
        Method("passkey shown by the peripheral", secure: true, .passkeyTypedHere, .keyboardDisplay, .displayOnly),
        Method("passkey typed on both", secure: true, .passkeyTypedOnBoth, .keyboardOnly, .keyboardOnly),
        Method("numeric comparison", secure: true, .numericComparison, .displayYesNo, .keyboardDisplay),
        outOfBand("to the central", toCentral: true, toPeripheral: false),
        outOfBand("to the peripheral", toCentral: false, toPeripheral: true),
        outOfBand("both ways", toCentral: true, toPeripheral: true),
    ]

    private static var legacyOutOfBand: Method {
        var method = Method("out of band", secure: false, .outOfBand)
        method.central.ownOutOfBandData = .temporaryKey(0x0123_4567_89AB_CDEF_0011_2233_4455_6677)
        method.peripheral.peerOutOfBandData = .temporaryKey(0x0123_4567_89AB_CDEF_0011_2233_4455_6677)
        return method
    }

    private static func outOfBand(_ name: String, toCentral: Bool, toPeripheral: Bool) -> Method {
        var method = Method("out of band \(name)", secure: true, .outOfBand)
        if toCentral {
            let (own, peer) = handOver(seed: 77)
            method.peripheral.ownOutOfBandData = own
            method.central.peerOutOfBandData = peer
        }
        if toPeripheral {
            let (own, peer) = handOver(seed: 78)
            method.central.ownOutOfBandData = own
            method.peripheral.peerOutOfBandData = peer
        }
        return method
    }

    /// Returns the out-of-band data that a device keeps, and the data that it gives to its peer.
    private static func handOver(seed: UInt64) -> (OwnOutOfBandData?, OutOfBandData?) {
        var generator = SeededGenerator(seed: seed)
        let octets = (0..<32).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
        let functions = SwiftCryptography()
        let random = UInt128(generator.next()) << 64 | UInt128(generator.next())
        guard let number = UInt256Bytes(leastSignificantFirst: octets),
            let key = functions.publicKey(of: P256PrivateKey(number))
        else { return (nil, nil) }
        return (
            .secureConnections(privateKey: P256PrivateKey(number), random: random),
            .secureConnections(confirm: Toolbox(functions).f4(u: key.x, v: key.x, x: random, z: 0), random: random)
        )
    }
}
