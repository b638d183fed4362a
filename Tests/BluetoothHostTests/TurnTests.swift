import BLEByteCoding
import BLEGATT
import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// The host calls the closures of apps one at a time, after it has sent its frames.
@Suite("Turns")
struct TurnTests {
    private let peer = DeviceAddress(0xC0FF_EE00_0001, isRandom: true)

    private func connected() throws -> (HostFixture, LinkIdentifier) {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        return (fixture, try fixture.link())
    }

    @Test func callFromADeliveryReturnsBeforeItsOwnDelivery() throws {
        let (fixture, link) = try connected()
        let host = fixture.host
        let log = Recorder<String>()
        try fixture.run {
            await host.observeEnd(of: link) { _ in
                host.assumeIsolated { host in
                    log.append("links: \(host.linkIdentifiers().count)")
                    host.observeEnd(of: link) { _ in log.append("nested") }
                    log.append("first returns")
                }
            }
            await host.observeEnd(of: link) { _ in log.append("second") }
        }
        fixture.disconnected(reason: .connectionTimeout)
        #expect(log.all == ["links: 0", "first returns", "second", "nested"])
    }

    @Test func callOutsideOfATurnIsDeliveredBeforeItReturns() throws {
        let (fixture, link) = try connected()
        let host = fixture.host
        fixture.disconnected(reason: .connectionTimeout)
        let log = Recorder<String>()
        try fixture.run {
            await host.isolated { host in
                host.observeEnd(of: link) { _ in log.append("ended") }
                host.beginWriteWithoutResponse([1], to: 3, on: link) { _ in log.append("write") }
                host.beginSending([1], of: 3, to: [link]) { _ in log.append("notification") }
                host.beginIndicating([1], of: 3, to: link) { _ in log.append("indication") }
                host.begin(ReadValue(handle: 3), on: link) { _ in log.append("read") }
                log.append("returned")
            }
        }
        #expect(log.all == ["ended", "write", "notification", "indication", "read", "returned"])
    }

    @Test func framesLeaveBeforeTheirCauseIsDelivered() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let (host, controller, peer) = (fixture.host, fixture.controller, peer)
        let sent = Recorder<Int>()
        try fixture.run {
            _ = await host.beginConnecting(to: peer) { _ in
                host.assumeIsolated { _ in sent.append(controller.data.count) }
            }
        }
        fixture.loop.run(for: .milliseconds(1))
        fixture.connect(role: .central)
        // The request for a longer ATT_MTU.
        #expect(sent.all == [1])
    }

    @Test func removedObserverIsNotCalledAnyMore() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let host = fixture.host
        let log = Recorder<String>()
        let (own, other) = (Recorder<UInt64>(), Recorder<UInt64>())
        try fixture.run {
            own.append(
                await host.observeServer { event in
                    guard case .connected = event else { return }
                    log.append("first")
                    host.assumeIsolated { host in
                        for observer in own.all + other.all { host.removeObserver(observer) }
                    }
                }
            )
            other.append(await host.observeServer { _ in log.append("second") })
            _ = await host.observeServer { event in
                guard case .connected = event else { return }
                log.append("third")
            }
        }
        fixture.connect()
        fixture.disconnected(reason: .connectionTimeout)
        fixture.connect()
        #expect(log.all == ["first", "third", "third"])
    }

    @Test func subscriberThatAnotherRemovesIsNotCalled() throws {
        let (fixture, link) = try connected()
        let host = fixture.host
        let log = Recorder<String>()
        let second = Recorder<UInt64>()
        try fixture.run {
            _ = try await host.addSubscriber(of: 3, on: link) { _ in
                log.append("first")
                host.assumeIsolated { host in
                    for subscriber in second.all { host.removeSubscriber(subscriber, of: 3, on: link) }
                }
            }
            second.append(try await host.addSubscriber(of: 3, on: link) { _ in log.append("second") })
        }
        #expect(fixture.exchange([0x1B, 3, 0, 7]).isEmpty)
        #expect(log.all == ["first"])
    }

    @Test func scanThatAnotherStopsIsNotCalled() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let (host, peer) = (fixture.host, peer)
        let log = Recorder<String>()
        let second = Recorder<ScanIdentifier>()
        try fixture.run {
            _ = await host.startScan(ScanOptions()) { _ in
                log.append("first")
                host.assumeIsolated { host in
                    for scan in second.all { host.stopScan(scan) }
                }
            }
            second.append(await host.startScan(ScanOptions()) { _ in log.append("second") })
        }
        fixture.loop.run(for: .milliseconds(5))
        fixture.controller.emit(ScriptedController.report(of: peer))
        fixture.loop.run(for: .milliseconds(5))
        #expect(log.all == ["first"])
        #expect(try fixture.run { await host.contradiction() } == nil)
    }

    @Test func scanMayStopItselfWithItsFirstReport() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let (host, peer) = (fixture.host, peer)
        let (count, scan) = (Recorder<Int>(), Recorder<ScanIdentifier>())
        try fixture.run {
            let options = ScanOptions(reportsDuplicates: true)
            scan.append(
                await host.startScan(options) { _ in
                    count.append(1)
                    host.assumeIsolated { host in
                        for scan in scan.all { host.stopScan(scan) }
                    }
                }
            )
        }
        fixture.loop.run(for: .milliseconds(5))
        for _ in 0..<2 { fixture.controller.emit(ScriptedController.report(of: peer)) }
        fixture.loop.run(for: .milliseconds(5))
        #expect(count.all == [1])
    }

    @Test func eachTimerIsATurn() throws {
        let (fixture, link) = try connected()
        let host = fixture.host
        fixture.disconnected(reason: .connectionTimeout)
        let log = Recorder<String>()
        try fixture.run {
            await host.isolated { host in
                host.run(after: .seconds(1)) {
                    host.assumeIsolated { host in
                        host.observeEnd(of: link) { _ in log.append("nested") }
                        log.append("first")
                    }
                }
                host.run(after: .seconds(1)) { log.append("second") }
            }
        }
        fixture.loop.run(for: .seconds(2))
        #expect(log.all == ["first", "nested", "second"])
    }

    @Test func observerMayCloseTheHost() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let host = fixture.host
        let log = Recorder<String>()
        try fixture.run {
            _ = await host.observeServer { event in
                switch event {
                case .connected:
                    log.append("connected")
                    host.spawn { await $0.close() }
                case .disconnected: log.append("disconnected")
                case .mtuChanged, .access: break
                }
            }
        }
        fixture.connect()
        fixture.loop.run(for: .seconds(5))
        #expect(log.all == ["connected", "disconnected"])
        #expect(fixture.events.all == ["poweredOn", "closed"])
        #expect(try fixture.run { await host.inspect() }.isEmpty)
    }

    @Test func deliveryDuringTheCloseMayUseTheHost() throws {
        let (fixture, link) = try connected()
        let host = fixture.host
        let log = Recorder<String>()
        try fixture.run {
            await host.observeEnd(of: link) { _ in
                host.assumeIsolated { host in
                    log.append("ended")
                    _ = host.observe { event in
                        if case .closed = event { log.append("closed") }
                    }
                    host.beginWriteWithoutResponse([1], to: 3, on: link) { _ in log.append("write") }
                    _ = host.beginConnecting(to: DeviceAddress(0xC0FF_EE00_0009, isRandom: true)) { _ in
                        log.append("connection")
                    }
                }
            }
            await host.close()
        }
        #expect(log.all == ["ended", "write", "connection", "closed"])
        #expect(fixture.events.all == ["poweredOn", "closed"])
        #expect(try fixture.run { await host.inspect() }.isEmpty)
    }

    @Test func observerOfAClosedHostIsToldAtOnce() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let host = fixture.host
        let log = Recorder<String>()
        try fixture.run {
            await host.close()
            await host.isolated { host in
                _ = host.observe { _ in log.append("closed") }
                _ = host.startScan(ScanOptions()) { _ in log.append("scan ended") }
                log.append("returned")
            }
        }
        #expect(log.all == ["closed", "scan ended", "returned"])
        #expect(try fixture.run { await host.inspect() }.isEmpty)
    }
}

extension BluetoothHost {
    fileprivate func isolated(_ body: @Sendable (isolated BluetoothHost) -> Void) {
        body(self)
    }
}
