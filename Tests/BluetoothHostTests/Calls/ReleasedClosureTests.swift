import BLEGATT
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// An object that an app's closure holds, and that calls the host at its end.
private final class CallerAtItsEnd: Sendable {
    private let host: BluetoothHost
    private let inspections: Recorder<HostInspection>

    init(_ host: BluetoothHost, _ inspections: Recorder<HostInspection>) {
        self.host = host
        self.inspections = inspections
    }

    deinit {
        inspections.append(host.assumeIsolated { $0.inspect() })
    }
}

/// Makes an observer whose release calls the host.
private func observer<Event>(
    _ host: BluetoothHost,
    _ inspections: Recorder<HostInspection>
) -> @Sendable (Event) -> Void {
    let caller = CallerAtItsEnd(host, inspections)
    return { _ in withExtendedLifetime(caller) {} }
}

/// Makes a pairing handler whose release calls the host.
private func pairingHandler(_ host: BluetoothHost, _ inspections: Recorder<HostInspection>) -> PairingHandler {
    let caller = CallerAtItsEnd(host, inspections)
    return { _, _ in
        withExtendedLifetime(caller) {}
        return {}
    }
}

/// Makes a closure for accesses whose release calls the host.
private func accessHandler(_ host: BluetoothHost, _ inspections: Recorder<HostInspection>) -> AccessHandler {
    let caller = CallerAtItsEnd(host, inspections)
    return { _, _ in withExtendedLifetime(caller) {} }
}

/// Makes a closure for authorizations whose release calls the host.
private func authorizer(_ host: BluetoothHost, _ inspections: Recorder<HostInspection>) -> Authorizer {
    let caller = CallerAtItsEnd(host, inspections)
    return { _, _ in withExtendedLifetime(caller) {} }
}

@Suite("Closures of apps that are released")
struct ReleasedClosureTests {
    private let fixture = HostFixture()
    private let inspections = Recorder<HostInspection>()

    @Test func removedObserversMayCallTheHostAtTheirEnd() throws {
        let (host, inspections) = (fixture.host, inspections)
        try fixture.run {
            let identifiers = [
                await host.observe(observer(host, inspections)),
                await host.observeServer(observer(host, inspections)),
                await host.observeSecurity(observer(host, inspections)),
            ]
            #expect(inspections.all.isEmpty)
            for identifier in identifiers { await host.removeObserver(identifier) }
        }
        let last = try #require(inspections.all.last)
        #expect(inspections.all.count == 3)
        #expect(last.hostObservers + last.serverObservers + last.securityObservers == 0)
    }

    @Test func observersOfAClosedHostMayCallItAtTheirEnd() throws {
        let (host, inspections) = (fixture.host, inspections)
        try fixture.run {
            _ = await host.observe(observer(host, inspections))
            _ = await host.observeServer(observer(host, inspections))
            _ = await host.observeSecurity(observer(host, inspections))
            await host.setPairingHandler(pairingHandler(host, inspections))
            await host.close()
        }
        #expect(inspections.all.count == 4)
        #expect(inspections.all.allSatisfy { $0.isEmpty })
    }

    @Test func closuresOfServicesMayCallTheHostAtTheirEnd() throws {
        let (host, inspections) = (fixture.host, inspections)
        try fixture.run {
            let published = try await host.publish(
                [
                    ServiceDefinition(
                        uuid: "180F",
                        characteristics: [
                            CharacteristicDefinition(
                                uuid: "2A19",
                                properties: [.read],
                                permissions: [.read],
                                value: .handled
                            )
                        ]
                    )
                ],
                handler: accessHandler(host, inspections)
            )
            await host.setAuthorizer(authorizer(host, inspections))
            #expect(inspections.all.isEmpty)
            await host.setAuthorizer(nil)
            #expect(inspections.all.count == 1)
            for service in published { await host.removeService(at: service.handle) }
            #expect(inspections.all.count == 2)
        }
    }

    @Test func closuresOfALinkMayCallTheHostAtTheirEnd() throws {
        let (host, inspections) = (fixture.host, inspections)
        try fixture.bringUp()
        fixture.connect(0x0040)
        try fixture.run {
            let link = try #require(await host.linkIdentifiers().first)
            let subscriber = try await host.addSubscriber(of: 3, on: link, deliver: observer(host, inspections))
            let end = await host.observeEnd(of: link, observer(host, inspections))
            #expect(inspections.all.isEmpty)
            await host.removeSubscriber(subscriber, of: 3, on: link)
            #expect(inspections.all.map(\.subscribers) == [0])
            await host.removeEndObserver(end, of: link)
            #expect(inspections.all.count == 2)
        }
    }

    @Test func replacedPairingHandlerMayCallTheHostAtItsEnd() throws {
        let (host, inspections) = (fixture.host, inspections)
        try fixture.run {
            let (_, identifier) = await host.setPairingHandler(pairingHandler(host, inspections))
            #expect(inspections.all.isEmpty)
            await host.restorePairingHandler(nil, inPlaceOf: identifier)
        }
        #expect(inspections.all.count == 1)
    }
}
