import BLE
import BLEHCITransport
import BLEVirtualController
import BluetoothHost
import Dispatch
import Glibc
import Synchronization
import Testing

@testable import BLETool

/// A server on a UNIX socket and a TCP port, and its events.
private final class Served: Sendable {
    let server: ControllerServer
    let events: AsyncStream<ControllerServer.Event>
    let path: String
    let unix: AdapterSpecification
    let tcp: AdapterSpecification

    init(_ configuration: ControllerServer.Configuration = .init()) async throws {
        let (events, continuation) = AsyncStream<ControllerServer.Event>.makeStream()
        self.events = events
        server = ControllerServer(configuration: configuration) { continuation.yield($0) }
        path = "/tmp/ble-served-\(getpid())-\(UInt64.random(in: 0...UInt64.max))"
        _ = try await server.listen(on: .unix(path: path))
        let address = try await server.listen(on: .tcp(host: "127.0.0.1", port: 0))
        unix = .unix(path: path)
        tcp = try AdapterSpecification(parsing: "\(address)")
    }

    func connected() async throws -> ControllerServer.Connection {
        for await event in events {
            if case .connected(let connection) = event { return connection }
        }
        throw CancellationError()
    }

    func disconnected() async throws -> (ControllerServer.Connection, TransportError) {
        for await event in events {
            if case .disconnected(let connection, let error) = event { return (connection, error) }
        }
        throw CancellationError()
    }
}

extension Adapter.Configuration {
    /// Stores nothing in the user's home directory.
    fileprivate static var forgetful: Self {
        var configuration = Self()
        configuration.stateLocation = .nowhere
        return configuration
    }
}

private let battery = ServiceDefinition(
    uuid: "180F",
    characteristics: [
        CharacteristicDefinition(uuid: "2A19", properties: .read, permissions: .read, value: .stored([0x64]))
    ]
)

@Suite("A controller server", .timeLimit(.minutes(10)))
struct ControllerServerTests {
    @Test("A host on a UNIX socket connects to one on a TCP port")
    func hostOnAUNIXSocketConnectsToOneOnATCPPort() async throws {
        let served = try await Served()
        let peripheral = try await Adapter.open(served.unix, configuration: .forgetful)
        let central = try await Adapter.open(served.tcp, configuration: .forgetful)
        let published = try await peripheral.peripheral.publish([battery])
        let advertising = try await peripheral.peripheral.startAdvertising(AdvertisementConfiguration())
        let address = try await peripheral.information.identityAddress
        let peer = try await central.central.connect(to: address, timeout: .seconds(20))
        #expect(try await peer.read(published[0].characteristics[0].valueHandle) == [0x64])
        await peer.disconnect()
        await advertising.stop()
        await central.close()
        await peripheral.close()
        await served.server.close()
    }

    @Test("Each controller gets its own address, and a host that returns gets its old one")
    func eachControllerGetsItsAddressAndAReturningHostItsOldOne() async throws {
        let served = try await Served()
        let first = try await Adapter.open(served.tcp, configuration: .forgetful)
        let second = try await Adapter.open(served.unix, configuration: .forgetful)
        let connections = [try await served.connected(), try await served.connected()]
        #expect(connections.map(\.number) == [1, 2])
        #expect(connections[0].address != connections[1].address)
        #expect(connections.map { "\($0.listener)" } == ["\(served.tcp)", "\(served.unix)"])
        #expect(try await second.information.publicAddress == connections[1].address)
        await first.close()
        #expect(try await served.disconnected().0 == connections[0])
        let third = try await Adapter.open(served.unix, configuration: .forgetful)
        let connection = try await served.connected()
        #expect(connection.number == 3)
        #expect(connection.address == connections[0].address)
        await third.close()
        await second.close()
        await served.server.close()
    }

    @Test("A host gets its controller's buffer sizes")
    func hostGetsTheBufferSizesOfItsController() async throws {
        var configuration = ControllerServer.Configuration()
        configuration.aclDataLength = 27
        configuration.aclPacketCount = 3
        let served = try await Served(configuration)
        let adapter = try await Adapter.open(served.unix, configuration: .forgetful)
        let information = try await adapter.information
        #expect(information.aclDataLength == 27)
        #expect(information.aclPacketCount == 3)
        await adapter.close()
        await served.server.close()
    }

    @Test("A controller with few links refuses further ones, and the error has its code")
    func controllerWithFewLinksRefusesFurtherOnes() async throws {
        var configuration = ControllerServer.Configuration()
        configuration.linkCount = 1
        let served = try await Served(configuration)
        var peripherals: [Adapter] = []
        var advertisements: [AdvertisingSet] = []
        for number in UInt64(1)...2 {
            var settings = Adapter.Configuration.forgetful
            settings.identityAddress = DeviceAddress(0xC000_0000_0000 + number, isRandom: true)
            let adapter = try await Adapter.open(served.unix, configuration: settings)
            advertisements.append(try await adapter.peripheral.startAdvertising(AdvertisementConfiguration()))
            peripherals.append(adapter)
        }
        let central = try await Adapter.open(served.tcp, configuration: .forgetful)
        let link = try await central.central.connect(to: DeviceAddress(0xC000_0000_0001, isRandom: true))
        await #expect(throws: BLEError.disconnected(.controller(.connectionLimitExceeded))) {
            _ = try await central.central.connect(to: DeviceAddress(0xC000_0000_0002, isRandom: true))
        }
        await link.disconnect()
        _ = try await central.central.connect(to: DeviceAddress(0xC000_0000_0002, isRandom: true))
        for adapter in [central] + peripherals { await adapter.close() }
        await served.server.close()
    }

    @Test("A chosen address stays with its listener, in any order of connections and after a restart")
    func chosenAddressStays() async throws {
        let chosen = [
            DeviceAddress(0x0200_0000_0001, isRandom: false), DeviceAddress(0x5642_4C45_0001, isRandom: false),
        ]
        for order in [[0, 1], [1, 0]] {
            let server = ControllerServer(configuration: .init()) { _ in }
            let directory = "/tmp/ble-served-\(getpid())-\(UInt64.random(in: 0...UInt64.max))"
            for index in 0...1 {
                _ = try await server.listen(on: .unix(path: "\(directory)-\(index)"), controllerAddress: chosen[index])
            }
            _ = try await server.listen(on: .unix(path: "\(directory)-any"))
            // A chosen address is not given to another controller, even before it is used.
            let other = try await Adapter.open(.unix(path: "\(directory)-any"), configuration: .forgetful)
            #expect(try await other.information.publicAddress == DeviceAddress(0x5642_4C45_0002, isRandom: false))
            var adapters: [Adapter] = []
            for index in order {
                let adapter = try await Adapter.open(.unix(path: "\(directory)-\(index)"), configuration: .forgetful)
                #expect(try await adapter.information.publicAddress == chosen[index])
                adapters.append(adapter)
            }
            // A host that restarts gets its controller's address again.
            await adapters[0].close()
            let again = try await Adapter.open(.unix(path: "\(directory)-\(order[0])"), configuration: .forgetful)
            #expect(try await again.information.publicAddress == chosen[order[0]])
            for adapter in [again, adapters[1], other] { await adapter.close() }
            await server.close()
        }
    }

    @Test("A second host at a chosen address is refused, and an event reports it")
    func chosenAddressIsForOneHost() async throws {
        let (events, continuation) = AsyncStream<ControllerServer.Event>.makeStream()
        let server = ControllerServer(configuration: .init()) { continuation.yield($0) }
        let path = "/tmp/ble-served-\(getpid())-\(UInt64.random(in: 0...UInt64.max))"
        let address = DeviceAddress(0x0200_0000_0001, isRandom: false)
        _ = try await server.listen(on: .unix(path: path), controllerAddress: address)
        let first = try await Adapter.open(.unix(path: path), configuration: .forgetful)
        await #expect(throws: BLEError.self) { try await Adapter.open(.unix(path: path), configuration: .forgetful) }
        var refused: DeviceAddress?
        for await event in events {
            if case .addressInUse(_, let address) = event { refused = address }
            if refused != nil { break }
        }
        #expect(refused == address)
        #expect(try await first.information.publicAddress == address)
        await first.close()
        await server.close()
    }

    @Test(
        "A host that does not read is disconnected at its limit or the common one",
        arguments: [true, false]
    )
    func hostThatDoesNotReadIsCutOff(isOwnLimit: Bool) async throws {
        var configuration = ControllerServer.Configuration()
        if isOwnLimit { configuration.backlogByteLimit = 20_000 } else { configuration.totalBacklogByteLimit = 20_000 }
        let served = try await Served(configuration)
        let adapter = try await Adapter.open(served.unix, configuration: .forgetful)
        _ = try await served.connected()
        let descriptor = try connectedSocket(served.path)
        let silent = try await served.connected()
        // Each Reset is answered by seven bytes that are not read: more than the socket's buffers and the limit hold.
        let resets = [UInt8]((0..<1000).flatMap { _ in [0x01, 0x03, 0x0C, 0x00] as [UInt8] })
        while send(descriptor, resets, resets.count, Int32(MSG_NOSIGNAL)) > 0 {}
        let (ended, error) = try await served.disconnected()
        #expect(ended == silent && error == .overflow)
        #expect(try await adapter.information.publicAddress != silent.address)
        #expect(await adapter.bonds().isEmpty)
        Glibc.close(descriptor)
        await adapter.close()
        await served.server.close()
    }

    /// Connects to a UNIX socket without reading from it.
    private func connectedSocket(_ path: String) throws -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let result = withUnsafeBytes(of: &address) {
            $0.withMemoryRebound(to: sockaddr.self) {
                connect(descriptor, $0.baseAddress, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(descriptor >= 0 && result == 0)
        return descriptor
    }

    @Test func closedServerRemovesItsSocketAndDisconnectsItsHosts() async throws {
        let served = try await Served()
        let adapter = try await Adapter.open(served.unix, configuration: .forgetful)
        let events = await adapter.events()
        #expect(access(served.path, F_OK) == 0)
        await served.server.close()
        #expect(access(served.path, F_OK) != 0)
        var isLost = false
        for await event in events {
            if case .resetting = event {
                isLost = true
                break
            }
        }
        #expect(isLost)
        await adapter.close()
    }

    @Test("Controllers vanish, fail or fall silent at configured times", arguments: ControllerServer.Mishap.allCases)
    func controllersFailAtConfiguredTimes(mishap: ControllerServer.Mishap) async throws {
        var configuration = ControllerServer.Configuration()
        configuration.mishaps = [mishap: .milliseconds(1)]
        let served = try await Served(configuration)
        let descriptor = try connectedSocket(served.path)
        var befallen: ControllerServer.Connection?
        for await event in served.events {
            if case .befell(let connection, mishap) = event {
                befallen = connection
                break
            }
        }
        #expect(befallen?.number == 1)
        if mishap != .vanished {
            // A Reset, which a working controller answers, and a byte that starts no packet, which ends the connection.
            let bytes: [UInt8] = [0x01, 0x03, 0x0C, 0x00, 0x47]
            let count = send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
            #expect(count == bytes.count)
        }
        let received = try #require(await bytesToTheEnd(of: descriptor))
        switch mishap {
        case .silent, .vanished: #expect(received == [])
        case .hardwareError: #expect(received.starts(with: [0x04, 0x10, 0x01, 0x00]))
        }
        Glibc.close(descriptor)
        await served.server.close()
    }

    /// Reads from a socket on a thread of its own; nil if the stream has not ended after a minute without a byte.
    private func bytesToTheEnd(of descriptor: Int32) async -> [UInt8]? {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                var limit = timeval(tv_sec: 60, tv_usec: 0)
                setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
                var received: [UInt8] = []
                var buffer = [UInt8](repeating: 0, count: 4096)
                var count = recv(descriptor, &buffer, buffer.count, 0)
                while count > 0 {
                    received += buffer.prefix(count)
                    count = recv(descriptor, &buffer, buffer.count, 0)
                }
                continuation.resume(returning: count == 0 ? received : nil)
            }
        }
    }

    @Test("No advertisement is received once the air has died")
    func deadAirCarriesNoAdvertisement() async throws {
        var configuration = ControllerServer.Configuration()
        configuration.diesAfter = .milliseconds(500)
        let served = try await Served(configuration)
        let peripheral = try await Adapter.open(served.unix, configuration: .forgetful)
        let central = try await Adapter.open(served.tcp, configuration: .forgetful)
        let address = try await peripheral.information.identityAddress
        var hasDied = false
        for await event in served.events {
            if case .airDied = event {
                hasDied = true
                break
            }
        }
        #expect(hasDied)
        let advertising = try await peripheral.peripheral.startAdvertising(AdvertisementConfiguration())
        // A living air carries an advertisement much sooner.
        await #expect(throws: BLEError.timedOut("connecting to \(address)")) {
            try await central.central.connect(to: address, timeout: .seconds(2))
        }
        await advertising.stop()
        await central.close()
        await peripheral.close()
        await served.server.close()
    }
}
