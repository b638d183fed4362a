import BLEATT
import BluetoothTypes
import Foundation
import Testing

@testable import BLEGATT
@testable import CoreBluetooth

/// Events that peers cause while the app's queue is blocked (Vol 3, Part F, 3.3.2).
@Suite("An app whose queue is blocked")
struct BlockedQueueTests {
    private func command(_ number: Int, from remote: RemoteCentral) -> CoreBluetooth.PeripheralEvent {
        let value = [UInt8(truncatingIfNeeded: number)]
        let write = AttributeWrite(handle: PeripheralFixture.valueHandle, offset: 0, value: value)
        return .access(remote, AccessRequest(identifier: UInt64(number), kind: .write(write, isCommand: true)))
    }

    private func request(_ number: Int, from remote: RemoteCentral) -> CoreBluetooth.PeripheralEvent {
        let kind = AccessRequest.Kind.read(PeripheralFixture.valueHandle, offset: 7)
        return .access(remote, AccessRequest(identifier: UInt64(number), kind: kind))
    }

    // MARK: The peripheral role

    /// A central on a link of its own.
    private func central(_ number: Int, _ identifier: UUID = UUID()) -> RemoteCentral {
        RemoteCentral(link: .placeholder(UInt64(number)), identifier: identifier, mtu: 23)
    }

    @Test func blockedQueueGetsTheFirstCommandsAndEveryRequest() throws {
        let fixture = PeripheralFixture()
        try fixture.publish()
        let other = RemoteCentral(link: .placeholder(2), identifier: UUID(), mtu: 23)
        fixture.manager.deliveryQueue.suspend()
        let taken = (0..<1100).filter { fixture.backend.deliver(command($0, from: fixture.remote)) }
        // 256 KiB, at 257 bytes each.
        #expect(taken == Array(0..<1021))
        #expect(fixture.backend.deliver(command(7, from: other)), "each central has its own limit")
        let again = RemoteCentral(link: .placeholder(3), identifier: fixture.remote.identifier, mtu: 23)
        #expect(!fixture.backend.deliver(command(7, from: again)), "a central that reconnects gets no more")
        #expect(fixture.backend.deliver(request(100, from: fixture.remote)))
        fixture.manager.deliveryQueue.resume()
        #expect(fixture.takeTold() == taken.map { "write 0:[\($0 & 0xFF)]" } + ["write 0:[7]", "read 7"])
        #expect(fixture.manager.backlog.isEmpty)
        #expect(fixture.backend.deliver(command(8, from: fixture.remote)))
        #expect(fixture.takeTold() == ["write 0:[8]"])
    }

    @Test func blockedQueueGetsALimitedNumberOfOtherEventsOfEachCentral() throws {
        let fixture = PeripheralFixture()
        try fixture.publish()
        let remote = fixture.remote
        fixture.manager.deliveryQueue.suspend()
        let subscriptions = (0..<40).count { number in
            let configuration: ClientConfiguration = number.isMultiple(of: 2) ? .notification : []
            return fixture.backend.deliver(.configured(remote, PeripheralFixture.valueHandle, configuration))
        }
        #expect(subscriptions == 32)
        #expect((0..<300).count { _ in fixture.backend.deliver(.mtuChanged(remote)) } == 256)
        #expect(!fixture.backend.deliver(.identified(remote, before: UUID())))
        let channels = (0..<70).count { number in
            fixture.backend.deliver(.channelOpened(central(number, remote.identifier), 0x80, .failure(.core(.unknown))))
        }
        #expect(channels == 64)
        #expect((0..<70).count { fixture.backend.deliver(.connected(central($0, remote.identifier))) } == 64)
        fixture.manager.deliveryQueue.resume()
        fixture.settle()
        #expect(fixture.manager.backlog.isEmpty)
    }

    @Test func blockedQueueGetsAllRestoredSubscriptions() {
        let fixture = PeripheralFixture()
        fixture.manager.deliveryQueue.suspend()
        for connection in 0..<3 {
            let remote = central(connection, fixture.remote.identifier)
            let taken = (1...600).count { number in
                fixture.backend.deliver(.configured(remote, AttributeHandle(number), .notification))
            }
            #expect(taken == 600)
        }
        fixture.manager.deliveryQueue.resume()
        fixture.settle()
        #expect(fixture.manager.backlog.isEmpty)
    }

    @Test func blockedQueueGetsALimitedNumberOfEventsOfAllCentrals() throws {
        let fixture = PeripheralFixture()
        try fixture.publish()
        let centrals = (0..<100).map { central($0) }
        fixture.manager.deliveryQueue.suspend()
        let commands = centrals.map { central in
            (0..<1100).count { fixture.backend.deliver(command($0, from: central)) }
        }
        // 4 MiB, at 257 bytes each.
        #expect(commands[..<15].allSatisfy { $0 == 1021 })
        #expect(commands.reduce(0, +) == 16_321)
        let channels = centrals.map { central in
            (0..<70).count { _ in fixture.backend.deliver(.channelOpened(central, 0x80, .failure(.core(.unknown)))) }
        }
        #expect(channels[..<4].allSatisfy { $0 == 64 } && channels.reduce(0, +) == 256)
        let changes = centrals.map { central in
            (0..<300).count { _ in fixture.backend.deliver(.mtuChanged(central)) }
        }
        #expect(changes.reduce(0, +) == 16_384)
        #expect(!fixture.backend.deliver(.configured(centrals[99], PeripheralFixture.valueHandle, .notification)))
        #expect((0..<1100).count { fixture.backend.deliver(.connected(central($0))) } == 1024)
        fixture.manager.deliveryQueue.resume()
        fixture.settle()
        #expect(fixture.manager.backlog.isEmpty)
        #expect(fixture.backend.deliver(command(8, from: centrals[99])))
    }

    // MARK: The central role

    @Test func blockedQueueGetsTheFirstValuesOfEachPeripheral() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        _ = fixture.discover(peripheral)
        let handle = CentralFixture.measurement.valueHandle
        let value = [UInt8](repeating: 1, count: 512)
        fixture.manager.deliveryQueue.suspend()
        var taken = 0
        while taken < 100_000, fixture.backend.deliver(.valueReceived(peripheral.identifier, handle, value)) {
            taken += 1
        }
        // 16 MiB; each value counts 256 bytes in addition to its length.
        #expect(taken == 21_846)
        #expect(fixture.backend.deliver(.valueReceived(UUID(), handle, value)), "each peripheral has its own limit")
        fixture.manager.deliveryQueue.resume()
        #expect(fixture.takeTold().count == taken)
        #expect(fixture.manager.backlog.isEmpty)
        #expect(fixture.backend.deliver(.valueReceived(peripheral.identifier, handle, [2])))
        #expect(fixture.takeTold() == ["value [2]"])
    }

    @Test func blockedQueueGetsALimitedNumberOfReconnectionsAndTheirEnd() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        fixture.manager.deliveryQueue.suspend()
        let failure = BackendError.core(.connectionTimeout)
        var taken = 0
        while taken < 1000 {
            fixture.backend.deliver(
                .disconnected(peripheral.connection, Disconnection(error: failure, isReconnecting: true, time: 0))
            )
            guard fixture.backend.deliver(.connected(peripheral.connection, mtu: 23, on: .placeholder(1))) else {
                break
            }
            taken += 1
        }
        #expect(taken == 64)
        #expect(
            fixture.backend.deliver(.connected(ConnectionIdentifier(newTo: UUID()), mtu: 23, on: .placeholder(1))),
            "each peripheral has its own limit"
        )
        #expect(fixture.backend.deliver(.disconnected(peripheral.connection, Disconnection(error: failure, time: 0))))
        fixture.manager.deliveryQueue.resume()
        let told = fixture.takeTold()
        #expect(told.count { $0 == "connected" } == 64)
        #expect(told.suffix(2) == ["disconnected connecting true", "disconnected disconnected false"])
        #expect(fixture.manager.backlog.isEmpty)
    }

    @Test("However often the app connects to a peripheral, it learns that the last request has succeeded")
    func blockedQueueGetsTheAnswerToTheLastRequest() {
        let fixture = CentralFixture()
        let peripheral = fixture.makePeripheral()
        fixture.manager.deliveryQueue.suspend()
        for mtu in 23..<1023 {
            fixture.manager.connect(peripheral)
            #expect(fixture.backend.deliver(.connected(peripheral.connection, mtu: mtu, on: .placeholder(1))))
        }
        let reconnections = (UInt64(2)..<100).count { number in
            fixture.backend.deliver(.connected(peripheral.connection, mtu: 23, on: .placeholder(number)))
        }
        #expect(reconnections == 63, "all requests count as one connection")
        fixture.manager.deliveryQueue.resume()
        #expect(fixture.takeTold() == ["connected"])
        #expect(peripheral.state == .connected && peripheral.linux.mtu == 1022)
        #expect(fixture.manager.backlog.isEmpty)
    }

    @Test("An event that replaces an earlier one leaves the order of later events and calls as it is")
    func replacedEventKeepsTheOrder() {
        let fixture = CentralFixture()
        let other = fixture.connectedPeripheral()
        let peripheral = fixture.makePeripheral()
        fixture.manager.deliveryQueue.suspend()
        for _ in 1...2 {
            fixture.manager.connect(peripheral)
            fixture.backend.deliver(.connected(peripheral.connection, mtu: 23, on: .placeholder(2)))
        }
        // This peripheral is connected already, and the manager answers the app itself.
        fixture.manager.connect(other)
        fixture.backend.deliver(.nameChanged(peripheral.identifier, "lamp"))
        fixture.manager.deliveryQueue.resume()
        #expect(fixture.takeTold() == ["connected", "connected", "name lamp"])
    }

    @Test func blockedQueueGetsTheFirstAdvertisementsAndChanges() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        fixture.manager.scanForPeripherals(withServices: nil)
        let discovery = Discovery(
            identifier: peripheral.identifier,
            name: nil,
            content: AdvertisedContent(AdvertisingData()),
            isConnectable: true,
            rssi: -40,
            time: 0,
            scanNumber: 1
        )
        _ = fixture.takeCalls()
        fixture.manager.deliveryQueue.suspend()
        #expect((0..<4096).count { _ in fixture.backend.deliver(.discovered(discovery)) } == 4096)
        fixture.manager.deliveryQueue.resume()
        #expect(fixture.takeTold().count == 4096)
        #expect(fixture.takeCalls().isEmpty, "nothing was dropped")
        fixture.manager.deliveryQueue.suspend()
        #expect((0..<5000).count { _ in fixture.backend.deliver(.discovered(discovery)) } == 4096)
        let range = HandleRange(start: 1, end: 2)
        let changes = (0..<300).count { _ in
            fixture.backend.deliver(.servicesChanged(peripheral.identifier, range))
        }
        #expect(changes == 256)
        let known = KnownPeripheral(identifier: peripheral.identifier, name: nil)
        #expect((0..<1100).count { _ in fixture.backend.deliver(.connectionEvent(known, .peerConnected)) } == 1024)
        fixture.manager.deliveryQueue.resume()
        #expect(fixture.takeTold().count { $0.hasPrefix("discovered") } == 4096)
        #expect(fixture.takeCalls() == [.reportDroppedDiscoveries], "once, however many were dropped")
        #expect(fixture.manager.backlog.isEmpty)
    }

    // MARK: A queue that runs

    /// Events arrive while the queue begins and ends the delivery of earlier ones, for which the app does nothing.
    @Test func runningQueueGetsEachEvent() {
        let fixture = CentralFixture()
        let event = CentralEvent.valueReceived(UUID(), CentralFixture.measurement.valueHandle, [])
        for _ in 0..<1000 {
            #expect((0..<1000).allSatisfy { _ in fixture.backend.deliver(event) })
            fixture.settle()
            #expect(fixture.manager.backlog.isEmpty)
        }
    }
}
