import BLEATT
import BLEGATT
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Foundation
import Synchronization
import Testing

@testable import CoreBluetooth

/// A model of the order of a central's calls. It compares random calls of all kinds, from several callers, with the
/// capture.
///
/// The first packet of each call leaves in the order of the calls, even if an earlier call waits for a response or for
/// buffer space. Callbacks arrive in the order of the packets that they belong to.
@Suite("Call order of a central")
struct ClientCallOrderTests {
    private enum Callback: Equatable {
        case answered(Int)
        case value([UInt8])
    }

    /// The calls and callbacks of one run.
    private final class Record: Sendable {
        enum Kind { case request, command, channel }

        struct Call {
            /// Identifies the call's first packet.
            let key: [UInt8]
            let kind: Kind
            /// Whether a PDU of the Attribute Protocol answers the call.
            var isRequest: Bool { kind == .request }
        }

        private struct State {
            var calls: [Call] = []
            var callbacks: [Callback] = []
            var sentCommands: [Int] = []
            var channels = 0
            var answeredChannels = 0
        }

        /// Less than the maximum number of channels of a link.
        static let channelLimit = 12

        private let state = Mutex(State())

        var calls: [Call] { state.withLock { $0.calls } }
        var callbacks: [Callback] { state.withLock { $0.callbacks } }
        var sentCommands: [Int] { state.withLock { $0.sentCommands } }
        var isComplete: Bool {
            state.withLock { state in
                let answers = state.callbacks.count { if case .answered = $0 { true } else { false } }
                return answers + state.sentCommands.count + state.answeredChannels == state.calls.count
            }
        }

        /// Records a call. The call is made before the next one is recorded.
        func call(_ key: (_ number: Int) -> [UInt8], _ kind: Kind = .request) -> Int {
            state.withLock { state in
                let number = state.calls.count
                state.calls.append(Call(key: key(number), kind: kind))
                return number
            }
        }

        /// Records a call for a channel, likewise, unless the limit is reached.
        ///
        /// - Returns: whether to make the call.
        func channel(_ psm: CBL2CAPPSM) -> Bool {
            state.withLock { state in
                guard state.channels < Record.channelLimit else { return false }
                state.channels += 1
                state.calls.append(Call(key: [AttributeTrace.channelRequest, UInt8(psm), 0], kind: .channel))
                return true
            }
        }

        func channelAnswered() { state.withLock { $0.answeredChannels += 1 } }

        func value(_ value: [UInt8]) { state.withLock { $0.callbacks.append(.value(value)) } }

        func completion<Value>(_ number: Int) -> Completion<Value> {
            { [self] result in
                if case .failure(let error) = result { Issue.record("call \(number): \(error)") }
                state.withLock { state in
                    if state.calls[number].isRequest {
                        state.callbacks.append(.answered(number))
                    } else {
                        state.sentCommands.append(number)
                    }
                }
            }
        }
    }

    /// One caller's view of the phone.
    private struct Caller: Sendable {
        let backend: HostCentral
        let peripheral: UUID
        let characteristics: [DiscoveredCharacteristic]
        let service: HandleRange
        let random: SharedGenerator
        let record: Record

        private func handle(_ index: Int) -> AttributeHandle { characteristics[index].valueHandle }

        func callAtRandom() {
            switch random.number(below: 14) {
            case 0..<4: writeWithoutResponse()
            case 4..<6: write(to: handle(random.number(below: 2)), count: 2 + random.number(below: 40))
            case 6: write(to: handle(Board.value), count: 100 + random.number(below: 100))
            case 7: read(handle(Board.value))
            case 8: read(handle(Board.long))
            case 9: discover()
            case 10: configure(Board.notified, .notification)
            case 11, 12: openChannel()
            default: configure(Board.indicated, .indication)
            }
        }

        private func writeWithoutResponse() {
            let padding = [UInt8](repeating: 0, count: random.number(below: 60))
            let number = record.call({ [0x52] + handle(Board.command).bytes + [UInt8](number: $0) }, .command)
            backend.writeWithoutResponse(
                [UInt8](number: number) + padding,
                to: handle(Board.command),
                of: peripheral,
                record.completion(number)
            )
        }

        /// Requests a channel to a service that the board does not have.
        private func openChannel() {
            let psm = CBL2CAPPSM(0x81 + random.number(below: 100))
            guard record.channel(psm) else { return }
            backend.openChannel(psm, to: peripheral) { [record] result in
                if case .success = result { Issue.record("channel to \(psm) is open") }
                record.channelAnswered()
            }
        }

        private func write(to handle: AttributeHandle, count: Int) {
            let opcode: UInt8 = count <= 62 ? 0x12 : 0x16
            let number = record.call { [opcode] + handle.bytes + [UInt8](number: $0) }
            let value = [UInt8](number: number) + [UInt8](repeating: 0, count: count - 2)
            backend.write(value, to: handle, of: peripheral, record.completion(number))
        }

        private func read(_ handle: AttributeHandle) {
            let number = record.call { _ in [0x0A] + handle.bytes }
            backend.read(handle, of: peripheral, record.completion(number))
        }

        private func discover() {
            switch random.number(below: 3) {
            case 0:
                let number = record.call { _ in ClientCallOrderTests.discoveryOfServices }
                backend.discoverServices(
                    [Board.service, Board.otherService],
                    of: peripheral,
                    record.completion(number)
                )
            case 1:
                let number = record.call { _ in [0x08] + service.bytes + [0x03, 0x28] }
                backend.discoverCharacteristics(in: service, of: peripheral, record.completion(number))
            default:
                let range = characteristics[Board.described].descriptorRange!
                let number = record.call { _ in [0x04] + range.bytes }
                backend.discoverDescriptors(in: range, of: peripheral, record.completion(number))
            }
        }

        private func configure(_ index: Int, _ configuration: ClientConfiguration) {
            let range = characteristics[index].descriptorRange!
            let number = record.call { _ in [0x04] + range.bytes }
            let wanted = random.number(below: 3) == 0 ? [] : configuration
            backend.setConfiguration(wanted, of: characteristics[index], on: peripheral, record.completion(number))
        }
    }

    private static let discoveryOfServices: [UInt8] = [0x06, 0x01, 0x00, 0xFF, 0xFF, 0x00, 0x28, 0xC0, 0xFF]

    /// Returns the identification of a call's first packet in a PDU from the phone; nil for other packets.
    private func key(of pdu: [UInt8], _ characteristics: [DiscoveredCharacteristic], _ service: HandleRange) -> [UInt8]?
    {
        let values = [Board.command, Board.value].map { characteristics[$0].valueHandle.bytes }
        let ranges = [Board.described, Board.notified, Board.indicated].map {
            characteristics[$0].descriptorRange!.bytes
        }
        switch pdu[0] {
        case 0x52, 0x12: return values.contains(Array(pdu[1..<3])) ? Array(pdu[..<5]) : nil
        case 0x16: return pdu[3..<5] == [0, 0] ? Array(pdu[..<3] + pdu[5..<7]) : nil
        case 0x0A: return pdu
        case 0x04: return ranges.contains(Array(pdu[1..<5])) ? pdu : nil
        case 0x06: return pdu == Self.discoveryOfServices ? pdu : nil
        case AttributeTrace.channelRequest: return [pdu[0]] + pdu[4..<6]
        case 0x08: return pdu == [0x08] + service.bytes + [0x03, 0x28] ? pdu : nil
        default: return nil
        }
    }

    @Test("Random calls of four callers leave and are answered in order", arguments: LinkConditions.all, 1...3)
    func firstPacketsLeaveInTheOrderOfTheCalls(conditions: LinkConditions, seed: Int) throws {
        let world = World(seed: UInt64(seed), recordsCaptures: true)
        defer { world.close() }
        let record = Record()
        let (device, characteristics, service) = try world.run {
            try await run(world, conditions, record)
        }
        let trace = try AttributeTrace(device.capture)
        let calls = record.calls
        let begins = trace.entries.map { entry in
            entry.direction == .hostToController ? key(of: entry.pdu, characteristics, service) : nil
        }
        // The discovery before the calls does not belong to them.
        let first = begins.firstIndex { $0 == Self.firstKey(of: characteristics) } ?? 0
        expectEqual(begins[(first + 1)...].compactMap { $0 }, calls.map(\.key))
        #expect(record.sentCommands == calls.indices.filter { calls[$0].kind == .command })
        #expect(calls.contains { $0.kind == .channel })

        // A call is answered by the last response before the next request's first packet.
        var callbacks: [(place: Int, Callback)] = []
        var answers: [Int: Int] = [:]
        var begun = 0
        var open: Int?
        for place in (first + 1)..<trace.entries.count {
            let entry = trace.entries[place]
            if begins[place] != nil {
                if begun < calls.count, calls[begun].isRequest { open = begun }
                begun += 1
            } else if entry.direction == .controllerToHost, entry.pdu[0] == 0x1B || entry.pdu[0] == 0x1D {
                callbacks.append((place, .value(Array(entry.pdu.dropFirst(3)))))
            } else if entry.direction == .controllerToHost, entry.pdu[0] < 0x1B, entry.pdu[0] % 2 == 1, let open {
                answers[open] = place
            }
        }
        callbacks += answers.map { ($0.value, .answered($0.key)) }
        expectEqual(record.callbacks, callbacks.sorted { $0.place < $1.place }.map(\.1))
    }

    /// The packet sent just before the calls: a read of the command's value.
    private static func firstKey(of characteristics: [DiscoveredCharacteristic]) -> [UInt8] {
        [0x0A] + characteristics[Board.described].valueHandle.bytes
    }

    /// Expects two sequences to be equal and names the first place where they differ.
    private func expectEqual<Element: Equatable>(_ found: [Element], _ expected: [Element]) {
        guard found != expected else { return }
        let place = zip(found, expected).enumerated().first { $0.element.0 != $0.element.1 }?.offset
        Issue.record(
            """
            \(found.count) instead of \(expected.count); at \(place ?? min(found.count, expected.count)) \
            \(found.dropFirst(place ?? expected.count).prefix(4)) instead of \
            \(expected.dropFirst(place ?? found.count).prefix(4))
            """
        )
    }

    private func run(
        _ world: World,
        _ conditions: LinkConditions,
        _ record: Record
    ) async throws -> (Device, [DiscoveredCharacteristic], HandleRange) {
        let generator = SharedGenerator(world.makeGenerator())
        let server = Guarded<HostPeripheral?>(nil)
        let clients = Guarded<Set<LinkIdentifier>>([])
        let pair = try await BoardAndPhone(world, conditions) { device in
            let backend = HostPeripheral(device.shared)
            server.withLock { $0 = backend }
            return backend
        } listen: { event, device in
            switch event {
            case .connected(let central): clients.withLock { _ = $0.insert(central.link) }
            case .access(let central, let request):
                guard let backend = server.withLock({ $0 }) else { return }
                let answer: @Sendable () -> Void = {
                    switch request.kind {
                    case .write(_, isCommand: true): break
                    case .read(_, let offset):
                        backend.answer(request.identifier, on: central.link, .success([7, UInt8(offset)]))
                    case .write, .execute: backend.answer(request.identifier, on: central.link, .success([]))
                    }
                }
                let delay = generator.delay(upTo: 60)
                device.adapter.host.assumeIsolated { _ = $0.run(after: delay, answer) }
            default: break
            }
        }
        let central = TestCentral(HostCentral(pair.phone.shared)) { event in
            if case .valueReceived(_, _, let value) = event { record.value(value) }
        }
        let peripheral = try await pair.connect(central, in: world)
        let service = try #require(try await central.services([Board.service], of: peripheral).first)
        let characteristics = try await central.characteristics(of: service, on: peripheral)
        _ = await central.read(characteristics[Board.described].valueHandle, of: peripheral)

        let caller = Caller(
            backend: central.backend,
            peripheral: peripheral,
            characteristics: characteristics,
            service: HandleRange(start: service.handle, end: service.endHandle),
            random: pair.random,
            record: record
        )
        let backend = try #require(server.withLock { $0 })
        let links = clients.withLock { Array($0) }
        await withTaskGroup(of: Void.self) { group in
            for _ in 1...4 {
                group.addTask {
                    for _ in 1...25 {
                        caller.callAtRandom()
                        try? await world.sleep(for: caller.random.delay(upTo: 30))
                    }
                }
            }
            // The board sends values during all of this.
            group.addTask {
                for number in 0..<60 {
                    let index = caller.random.number(below: 2) == 0 ? Board.notified : Board.indicated
                    backend.update([UInt8(number)], of: pair.handle(index), to: links) { _ in }
                    try? await world.sleep(for: caller.random.delay(upTo: 60))
                }
            }
        }
        while !record.isComplete { try await world.sleep(for: .milliseconds(100)) }
        return (pair.phone.device, characteristics, caller.service)
    }
}
