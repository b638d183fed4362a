import BLEByteCoding
import BLEHCI
import BLEHCITransport
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Synchronization
import Testing

import struct BLEVirtualController.SeededGenerator

/// A host on a scripted controller, in virtual time.
final class HostFixture {
    /// The peer of a link, unless a test says otherwise.
    static let peer = DeviceAddress(0xC0FF_EE00_0001, isRandom: true)

    let loop = SimulatedEventLoop()
    let controller: ScriptedController
    let host: BluetoothHost
    let events = Recorder<String>()
    let opener: Opener

    init(
        profile: ScriptedController.Profile = .init(),
        configure: (inout BluetoothHost.Configuration) -> Void = { _ in }
    ) {
        var configuration = BluetoothHost.Configuration()
        configure(&configuration)
        let controller = ScriptedController(loop: loop, profile: profile)
        self.controller = controller
        let opener = Opener(controller)
        host = BluetoothHost(
            loop: loop,
            configuration: configuration,
            random: SeededGenerator(seed: 1),
            openTransport: { () throws(TransportError) in
                try opener.open()
            }
        )
        self.opener = opener
    }

    /// Opens the only controller, as often as a test allows.
    final class Opener: Sendable {
        private let controller: ScriptedController
        let count = Atomic(0)
        let failuresLeft = Atomic(0)

        init(_ controller: ScriptedController) { self.controller = controller }

        func open() throws(TransportError) -> any Transport {
            count.add(1, ordering: .sequentiallyConsistent)
            if failuresLeft.load(ordering: .sequentiallyConsistent) > 0 {
                failuresLeft.subtract(1, ordering: .sequentiallyConsistent)
                throw .connectionFailed("the controller", errno: 111)
            }
            return controller
        }
    }

    /// Runs `body` on the loop to its end.
    ///
    /// - Returns: the result of `body`.
    @discardableResult
    func run<Value: Sendable>(
        limit: Duration = .seconds(600),
        _ body: @escaping @Sendable () async throws -> Value
    ) throws -> Value {
        let result = Recorder<Result<Value, any Error>>()
        Task(executorPreference: loop.taskExecutor) {
            do {
                result.append(.success(try await body()))
            } catch {
                result.append(.failure(error))
            }
        }
        guard loop.run(limit: limit, until: { !result.all.isEmpty }), let outcome = result.all.first else {
            throw Unfinished()
        }
        return try outcome.get()
    }

    /// Starts `body` on the loop without waiting for it.
    func start<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) -> Recorder<
        Result<Value, any Error>
    > {
        let result = Recorder<Result<Value, any Error>>()
        Task(executorPreference: loop.taskExecutor) {
            do {
                result.append(.success(try await body()))
            } catch {
                result.append(.failure(error))
            }
        }
        loop.run(for: .milliseconds(1))
        return result
    }

    struct Unfinished: Error {}

    func bringUp() throws {
        let host = host
        let events = events
        try run {
            _ = await host.observe { event in
                switch event {
                case .poweredOn: events.append("poweredOn")
                case .resetting(let reason): events.append("resetting: \(reason)")
                case .scanRestarted: events.append("scanRestarted")
                case .stateUnavailable(let reason): events.append("stateUnavailable: \(reason)")
                case .closed: events.append("closed")
                case .eventsDropped: break
                }
            }
            try await host.start()
        }
        controller.forgetCommands()
    }

    /// Makes the controller report a connection.
    func connect(
        _ handle: ConnectionHandle = 0x0040,
        role: BLEHCI.Role = .peripheral,
        peer: DeviceAddress = HostFixture.peer,
        forgetsData: Bool = true
    ) {
        controller.emit {
            LEConnectionComplete(
                connectionHandle: handle,
                role: role,
                peerAddress: PeerAddress(peer),
                connectionInterval: 24,
                peripheralLatency: 0,
                supervisionTimeout: 400
            ).encodePacket(into: &$0)
        }
        loop.run(for: .milliseconds(1))
        if forgetsData { controller.forgetData() }
    }

    /// Returns the first link.
    func link(sourceLocation: SourceLocation = #_sourceLocation) throws -> LinkIdentifier {
        let host = host
        return try #require(try run { await host.linkIdentifiers() }.first, sourceLocation: sourceLocation)
    }

    /// Makes the controller report the end of a link.
    func disconnected(_ handle: ConnectionHandle = 0x0040, reason: HCIErrorCode) {
        controller.emit { DisconnectionComplete(connectionHandle: handle, reason: reason).encodePacket(into: &$0) }
        loop.run(for: .milliseconds(1))
    }

    /// Makes the peer send an ATT PDU.
    ///
    /// - Returns: the ATT PDUs that the host sent since the last call.
    func exchange(_ pdu: [UInt8], on handle: ConnectionHandle = 0x0040) -> [[UInt8]] {
        controller.forgetData()
        controller.emit(Self.acl(pdu, on: handle))
        loop.run(for: .milliseconds(1))
        return controller.data.map { Array($0.dropFirst(9)) }
    }

    static func acl(_ pdu: [UInt8], channel: UInt16 = 4, on handle: ConnectionHandle = 0x0040) -> [UInt8] {
        PacketBuffer.bytes { buffer in
            buffer.append(PacketType.acl.rawValue)
            buffer.append(handle.rawValue | 0x2000)
            buffer.append(UInt16(pdu.count + 4))
            buffer.append(UInt16(pdu.count))
            buffer.append(channel)
            buffer.append(pdu)
        }
    }
}

/// Collects values on the loop.
final class Recorder<Element: Sendable>: Sendable {
    private let elements = Mutex<[Element]>([])

    var all: [Element] { elements.withLock { $0 } }

    func append(_ element: Element) {
        elements.withLock { $0.append(element) }
    }
}
