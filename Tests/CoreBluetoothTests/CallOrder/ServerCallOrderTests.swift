import BLEATT
import BLECapture
import BLEGATT
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Foundation
import Synchronization
import Testing

@testable import CoreBluetooth

/// A model of the order of a peripheral manager's calls. It compares random notifications, indications and answers of
/// several callers with the capture.
///
/// The packets leave in the order of the calls, with one exception: an answer may pass an indication that waits for the
/// confirmation of an earlier indication, and the values behind it. Otherwise a client that confirms late would get no
/// answer.
@Suite("Call order of a peripheral manager")
struct ServerCallOrderTests {
    private enum Kind {
        case notification
        case indication
        case answer
    }

    /// The calls and events of one run.
    private final class Record: Sendable {
        struct Call {
            /// The first bytes of the call's packet.
            let packet: [UInt8]
            let kind: Kind
        }

        struct State {
            var calls: [Call] = []
            var completed = 0
            /// The packets that contain the accesses.
            var accesses: [[UInt8]] = []
            /// Requests without an answer yet.
            var pending: [(link: LinkIdentifier, request: UInt64)] = []
            var links: Set<LinkIdentifier> = []
        }

        let state = Mutex(State())

        var updates: Int { state.withLock { $0.calls.count { $0.kind != .answer } } }

        func accessed(_ central: RemoteCentral, _ request: AccessRequest) {
            state.withLock { state in
                switch request.kind {
                case .read(let handle, _):
                    state.accesses.append([0x0A] + handle.bytes)
                    state.pending.append((central.link, request.identifier))
                case .write(let write, _): state.accesses.append([0x52] + write.handle.bytes + write.value)
                case .execute: break
                }
            }
        }

        func call(_ kind: Kind, _ packet: (_ number: [UInt8]) -> [UInt8]) -> [UInt8] {
            state.withLock { state in
                let number = [UInt8](number: state.calls.count)
                state.calls.append(Call(packet: packet(number), kind: kind))
                return number
            }
        }
    }

    /// One caller's view of the board.
    private struct Caller: Sendable {
        let backend: HostPeripheral
        let notified: AttributeHandle
        let indicated: AttributeHandle
        let random: SharedGenerator
        let record: Record

        func callAtRandom() {
            switch random.number(below: 8) {
            case 0..<3: update(.notification, 0x1B, notified)
            case 3..<5: update(.indication, 0x1D, indicated)
            default: answer()
            }
        }

        private func update(_ kind: Kind, _ opcode: UInt8, _ handle: AttributeHandle) {
            let number = record.call(kind) { [opcode] + handle.bytes + $0 }
            let value = number + [UInt8](repeating: 0, count: random.number(below: 58))
            let links = record.state.withLock { Array($0.links) }
            backend.update(value, of: handle, to: links) { [record] _ in record.state.withLock { $0.completed += 1 } }
        }

        func answer() {
            guard let (link, request) = record.state.withLock({ $0.pending.isEmpty ? nil : $0.pending.removeFirst() })
            else { return }
            let number = record.call(.answer) { [0x0B] + $0 }
            backend.answer(request, on: link, .success(number))
        }
    }

    @Test("Random values and answers of three callers leave in their order", arguments: LinkConditions.all, 1...3)
    func packetsLeaveInTheOrderOfTheCalls(conditions: LinkConditions, seed: Int) throws {
        let world = World(seed: UInt64(seed), recordsCaptures: true)
        defer { world.close() }
        let record = Record()
        let (device, handles) = try world.run { try await run(world, conditions, record) }
        let (calls, accesses) = record.state.withLock { ($0.calls, $0.accesses) }
        let trace = try AttributeTrace(device.capture)

        var unsent = Array(calls.indices)
        var isConfirmationAwaited = false
        // Whether a confirmation was pending at some time since the client's last request.
        var wasConfirmationAwaited = false
        for entry in trace.entries {
            if entry.direction == .controllerToHost {
                switch entry.pdu[0] {
                case 0x0A: wasConfirmationAwaited = isConfirmationAwaited
                case 0x1E: isConfirmationAwaited = false
                default: break
                }
                continue
            }
            if entry.pdu[0] == 0x1D { (isConfirmationAwaited, wasConfirmationAwaited) = (true, true) }
            guard let place = unsent.firstIndex(where: { entry.pdu.starts(with: calls[$0].packet) })
            else { continue }
            let number = unsent[place]
            if place > 0 {
                let first = unsent[0]
                // An answer passes an indication that waits for the confirmation of an earlier indication. The
                // confirmation can arrive before the answer's packet has left the host.
                let isAllowed =
                    calls[number].kind == .answer && calls[first].kind == .indication && wasConfirmationAwaited
                if !isAllowed {
                    Issue.record("call \(number), \(calls[number].kind), overtakes call \(first), \(calls[first].kind)")
                    return
                }
            }
            unsent.remove(at: place)
        }
        #expect(unsent.isEmpty)

        let received = trace.entries
            .filter { $0.direction == .controllerToHost }
            .map(\.pdu)
            .filter { $0[0] == 0x0A && handles.contains(Array($0[1..<3])) || $0[0] == 0x52 }
        #expect(received == accesses)
    }

    /// Runs the model.
    ///
    /// - Returns: the board's device, and the handles of the values that the app provides.
    private func run(
        _ world: World,
        _ conditions: LinkConditions,
        _ record: Record
    ) async throws -> (Device, [[UInt8]]) {
        let server = Guarded<HostPeripheral?>(nil)
        let pair = try await BoardAndPhone(world, conditions) { device in
            let backend = HostPeripheral(device.shared)
            server.withLock { $0 = backend }
            return backend
        } listen: { event, _ in
            switch event {
            case .connected(let central): record.state.withLock { _ = $0.links.insert(central.link) }
            case .access(let central, let request): record.accessed(central, request)
            default: break
            }
        }
        let phone = await pair.phone.central()
        let peripheral = try await pair.connect(phone, in: world)
        let characteristics = try await phone.characteristics(of: Board.service, on: peripheral)
        _ = await phone.configure(.notification, of: characteristics[Board.notified], on: peripheral)
        _ = await phone.configure(.indication, of: characteristics[Board.indicated], on: peripheral)

        let caller = Caller(
            backend: try #require(server.withLock { $0 }),
            notified: pair.handle(Board.notified),
            indicated: pair.handle(Board.indicated),
            random: pair.random,
            record: record
        )
        let isOver = Guarded(false)
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                // The phone always has a request outstanding, and sends writes between.
                var number = 0
                while !isOver.withLock({ $0 }) {
                    if pair.random.number(below: 2) == 0 {
                        let value = [UInt8](number: number)
                        phone.backend.writeWithoutResponse(value, to: pair.handle(Board.command), of: peripheral) { _ in
                        }
                        number += 1
                    }
                    _ = await phone.read(pair.handle(Board.value), of: peripheral)
                }
            }
            group.addTask {
                await withTaskGroup(of: Void.self) { group in
                    for _ in 1...3 {
                        group.addTask {
                            for _ in 1...40 {
                                caller.callAtRandom()
                                try? await world.sleep(for: caller.random.delay(upTo: 25))
                            }
                        }
                    }
                }
                // Answers the remaining requests.
                isOver.withLock { $0 = true }
                while record.state.withLock({ $0.completed }) < record.updates {
                    caller.answer()
                    try? await world.sleep(for: .milliseconds(50))
                }
                for _ in 1...100 {
                    caller.answer()
                    try? await world.sleep(for: .milliseconds(50))
                }
            }
        }
        try await world.sleep(for: .seconds(3))
        return (pair.board.device, [pair.handle(Board.value).bytes])
    }
}
