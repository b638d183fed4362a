import BLE
import BLEProfiles
import BluetoothTesting
import Testing

@testable import BLETool

/// The commands of `ble serve` while answers of clients are outstanding.
@Suite("ble serve and clients that do not answer")
struct ServeWaitingTests {
    private static let profile = """
        {"services": [{"uuid": "180F", "characteristics": [
          {"uuid": "2A19", "properties": ["read", "indicate"], "value": "64"},
          {"uuid": "2A1B", "properties": ["notify"], "value": "64"}]}]}
        """

    /// A server that accepts commands, and its output.
    private struct Serving: Sendable {
        let adapter: Adapter
        let server: ProfileServer
        let output = PrintedLines()
        private let commands: AsyncStream<String>
        private let input: AsyncStream<String>.Continuation

        init(in world: World) async throws {
            adapter = try await world.device("ble").openAdapter()
            let console = PairingConsole(asJSON: true, passkey: nil, answers: .commands) { _ in false }
            let profile = try Profile(decoding: JSON(parsing: Array(ServeWaitingTests.profile.utf8)))
            server = try await ProfileServer(profile, on: adapter, console: console) { [output] in output.append($0) }
            (commands, input) = AsyncStream.makeStream()
        }

        func run() async throws {
            try await server.run(adapter: "virtual", commands: commands)
        }

        func tell(_ line: String) { input.yield(line) }
    }

    /// A subscribed client. While it is absent, its link exists for as long as a link can.
    private static func client(
        _ device: Device,
        of serving: Serving
    ) async throws -> (peer: RemotePeripheral, indications: Subscription, notifications: Subscription) {
        let central = try await device.openAdapter().central
        let peer = try await central.connect(
            to: try await serving.adapter.information.identityAddress,
            parameters: ConnectionParameters(supervisionTimeout: .seconds(32))
        )
        let characteristics = try await peer.discoverAll().flatMap(\.characteristics)
        let level = try #require(characteristics.first { $0.uuid == "2A19" })
        let state = try #require(characteristics.first { $0.uuid == "2A1B" })
        return (peer, try await peer.subscribe(to: level), try await peer.subscribe(to: state))
    }

    /// Runs a server with a client that vanishes after it has subscribed, and gives the server commands.
    ///
    /// - Returns: how long the server then took to quit.
    private static func timeToQuit(
        _ commands: [String]
    ) throws -> (time: Duration, errors: Int, disconnections: Int) {
        try World.run { world in
            let serving = try await Serving(in: world)
            async let run: Void = serving.run()
            let device = world.device("client")
            let client = try await ServeWaitingTests.client(device, of: serving)
            device.vanish()
            let start = world.elapsed
            for command in commands + ["quit"] { serving.tell(command) }
            try await run
            let time = world.elapsed - start
            withExtendedLifetime(client) {}
            return (time, serving.output.count(of: "error"), serving.output.count(of: "disconnected"))
        }
    }

    @Test("quit does not wait for a client that does not confirm an indication")
    func indicationDoesNotDelayQuit() throws {
        let result = try Self.timeToQuit(["indicate 2A19 01", "indicate 2A19 02"])
        #expect(result.time < .seconds(1))
        #expect(result.errors == 0)
    }

    @Test("quit does not wait for clients' links to end")
    func disconnectionDoesNotDelayQuit() throws {
        let result = try Self.timeToQuit(["disconnect", "disconnect"])
        #expect(result.time < .seconds(1))
        #expect(result.errors == 0 && result.disconnections == 0)
    }

    @Test("Waiting indications are bounded; the next command waits until the client is gone")
    func waitingIndicationsAreBounded() throws {
        let limit = PendingValues.limit
        let result = try Self.timeToQuit(Array(repeating: "indicate 2A19 01", count: limit))
        #expect(result.time < .seconds(1))
        let longer = try Self.timeToQuit(Array(repeating: "indicate 2A19 01", count: limit + 3))
        #expect(longer.time > .seconds(20) && longer.time < .seconds(60))
        #expect(result.errors == 0 && longer.errors == 0)
    }

    @Test("quit does not wait for notifications behind an unconfirmed indication")
    func notificationsDoNotDelayQuit() throws {
        let result = try Self.timeToQuit(
            ["indicate 2A19 01", "indicate 2A19 02"] + Array(repeating: "notify 2A1B 01", count: 200)
        )
        #expect(result.time < .seconds(1))
        #expect(result.errors == 0)
    }

    @Test("Waiting notifications are bounded; the next command waits until the client is gone")
    func waitingNotificationsAreBounded() throws {
        let count = PendingValues.limit + 3
        let result = try Self.timeToQuit(
            ["indicate 2A19 01", "indicate 2A19 02"] + Array(repeating: "notify 2A1B 01", count: count)
        )
        #expect(result.time > .seconds(20) && result.time < .seconds(60))
        #expect(result.errors == 0)
    }

    @Test("Notifications are sent in the order of their commands, even when a client is absent")
    func notificationsKeepTheirOrder() throws {
        try World.run { world in
            let serving = try await Serving(in: world)
            async let run: Void = serving.run()
            let absent = world.device("absent")
            let first = try await ServeWaitingTests.client(absent, of: serving)
            let second = try await ServeWaitingTests.client(world.device("present"), of: serving)
            absent.vanish()
            let start = world.elapsed
            var iterator = second.notifications.makeAsyncIterator()
            var values: [[UInt8]?] = []
            for number in 0..<80 { serving.tell("notify 2A1B 01\(number + 10)") }
            for _ in 0..<80 { values.append(try await iterator.next()?.value) }
            let expected: [[UInt8]?] = try (0..<80).map { number in try [UInt8](argument: "01\(number + 10)") }
            #expect(values == expected)
            #expect(world.elapsed - start < .seconds(3))
            serving.tell("quit")
            try await run
            #expect(serving.output.count(of: "error") == 0)
            withExtendedLifetime(first) {}
        }
    }

    @Test("A client that does not confirm delays only its own indications")
    func otherClientIsNotDelayed() throws {
        try World.run { world in
            let serving = try await Serving(in: world)
            async let run: Void = serving.run()
            let absent = world.device("absent")
            let first = try await ServeWaitingTests.client(absent, of: serving)
            let second = try await ServeWaitingTests.client(world.device("present"), of: serving)
            absent.vanish()
            let start = world.elapsed
            let limit = PendingValues.limit
            var iterator = second.indications.makeAsyncIterator()
            var values: [[UInt8]?] = []
            for number in 0..<10 { serving.tell("indicate 2A19 0\(number)") }
            for _ in 0..<10 { values.append(try await iterator.next()?.value) }
            #expect(values == (0..<10).map { [$0] })
            #expect(world.elapsed - start < .seconds(3))

            // The indications that the absent client has not confirmed count until its link has ended.
            for _ in 0..<limit { serving.tell("indicate 2A19 FF") }
            for _ in 0..<(limit - 10) { values.append(try await iterator.next()?.value) }
            #expect(values.dropFirst(10).allSatisfy { $0 == [0xFF] })
            serving.tell("indicate 2A19 AA")
            while serving.output.count(of: "disconnected") == 0 { try await world.sleep(for: .seconds(1)) }
            var last: [[UInt8]?] = []
            for _ in 0..<11 { last.append(try await iterator.next()?.value) }
            #expect(last == Array(repeating: [0xFF], count: 10) + [[0xAA]])
            #expect(serving.output.count(of: "error") == 0)
            serving.tell("quit")
            try await run
            withExtendedLifetime(first) {}
        }
    }
}
