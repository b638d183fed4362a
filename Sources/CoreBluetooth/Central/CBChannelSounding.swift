import BLEHCI
import Foundation

/// How a session of channel sounding is performed.
open class CBChannelSoundingSessionConfiguration: NSObject, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant.

    /// The role of the peripheral in a session.
    ///
    /// Apple's documentation describes the type and names no cases. The raw values are those of the Core Specification.
    public enum Role: Int, Sendable {
        /// The peripheral sends first in each step. It configures and starts the procedures, and this host waits for
        /// it.
        case initiator = 0
        /// The peripheral answers. This host configures and starts the procedures.
        case reflector = 1
    }

    /// The role that the peripheral assumes.
    public let role: Role

    /// Creates a configuration.
    public init(role: Role) {
        self.role = role
    }
}

/// The results of a procedure of channel sounding.
///
/// This host creates none: it computes no distances.
open class CBChannelSoundingProcedureResults: NSObject, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant.

    /// The distance of the peripheral in meters.
    public let distance: Double

    init(distance: Double) {
        self.distance = distance
    }
}

extension CBPeripheral {
    /// Starts a session of channel sounding. There is one session at a time. The link must be encrypted.
    ///
    /// ``CBPeripheralDelegate/peripheral(_:didReceive:error:)`` reports each procedure, and
    /// ``CBPeripheralDelegate/peripheral(_:didCompleteChannelSoundingSession:)`` the end. If the peripheral is the
    /// reflector, a session has one procedure. If it is the initiator, it decides.
    public func startChannelSoundingSession(_ configuration: CBChannelSoundingSessionConfiguration) {
        guard let target = commandTarget() else { return }
        let procedureEnded: Completion<Void> = answer(for: target) { peripheral, _ in
            let error = CBError.described(.channelSoundingProcedureFailed)
            peripheral.tell { $0.peripheral(peripheral, didReceive: nil, error: error) }
        }
        backend?.startChannelSounding(
            as: configuration.role == .initiator ? .reflector : .initiator,
            with: target.peripheral,
            procedureEnded: { procedureEnded(.success(())) },
            answer(for: target) { peripheral, result in
                let error = peripheral.take(result) { _, _ in }
                peripheral.tell { $0.peripheral(peripheral, didCompleteChannelSoundingSession: error) }
            }
        )
    }

    /// Ends the session of channel sounding with the peripheral.
    /// ``CBPeripheralDelegate/peripheral(_:didCompleteChannelSoundingSession:)`` reports the end. Does nothing if there
    /// is no session.
    public func cancelChannelSoundingSession() {
        guard commandTarget() != nil else { return }
        backend?.cancelChannelSounding(with: identifier)
    }
}
