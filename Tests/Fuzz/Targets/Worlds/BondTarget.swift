import BLE
import BLEATT
import BLEGATT
import BLEHCI
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Synchronization

import struct BLEVirtualController.SeededGenerator

/// Fuzzes the security of two hosts in a simulated world: pairings, out-of-band data, bonds, changes of identity,
/// encryption and signed writes.
///
/// Both apps change their policies, pair, remove bonds and write while links begin and end. Both hosts also send
/// frames of the script, as peers that break the protocol would. The controller of the first host also sends packets
/// of the script.
enum BondFuzzing {
    /// - Parameter script: the choice of each packet selects an action, and its bytes are the parameters. The delay, in
    ///   units of 20 ms, passes before it.
    static func run(_ script: Script) {
        runWorld { world in
            let writes = WrittenValues(random: world.makeGenerator())
            var actions = try await BondActions(world: world, writes: writes)
            for packet in script.packets {
                if packet.delay > 0 { try await world.sleep(for: .milliseconds(Int(packet.delay) * 20)) }
                await actions.perform(packet)
                for side in actions.sides { await requireConsistency(of: side.adapter) }
            }
            await actions.end()
        }
    }
}

/// The values that apps have written without a response, and that servers have received.
///
/// The host never repeats them, so a value that arrives twice has been replayed.
final class WrittenValues: Sendable {
    private struct State {
        var random: SeededGenerator
        var sent: Set<[UInt8]> = []
        var received: Set<[UInt8]> = []
    }

    private let state: Mutex<State>

    init(random: SeededGenerator) {
        state = Mutex(State(random: random))
    }

    /// A value that no other call has.
    func next() -> [UInt8] {
        state.withLock { state in
            let value = (0..<8).map { _ in UInt8.random(in: 0...255, using: &state.random) }
            state.sent.insert(value)
            return value
        }
    }

    func receive(_ value: [UInt8]) {
        let isNew = state.withLock { state in
            guard state.sent.contains(value) else { return true }
            return state.received.insert(value).inserted
        }
        require(isNew, "the signed write of \(value) was accepted twice")
    }
}

/// The passkey that one of the two devices has shown, for the other.
struct PasskeyDelegate: PairingDelegate {
    /// The passkey that was shown last, by either device.
    final class Display: Sendable {
        fileprivate let passkey = Mutex<UInt32>(0)
    }

    let world: World
    let display: Display

    func answer(_ inquiry: PairingInquiry) async -> PairingAnswer {
        switch inquiry.question {
        case .showPasskey(let passkey):
            display.passkey.withLock { $0 = passkey }
            return .accept
        case .enterPasskey:
            // The other device shows its passkey in the meantime.
            try? await world.sleep(for: .milliseconds(500))
            return .passkey(display.passkey.withLock { $0 })
        case .consent, .compare: return .accept
        }
    }
}
