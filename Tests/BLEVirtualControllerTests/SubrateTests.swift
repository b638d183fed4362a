import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

@Suite("Subrated connections of software controllers")
struct SubrateTests {
    private static let hostFeature = LESetHostFeature(bitNumber: 38, bitValue: true)

    /// Two controllers with a link whose hosts support subrating. The interval is 30 ms.
    private static func subratable(
        latency: UInt16 = 0,
        defaults: LESetDefaultSubrate? = nil,
        hosts: [Int] = [0, 1]
    ) -> LinkWorld {
        LinkWorld(
            interval: 24,
            latency: latency,
            supervisionTimeout: 400,
            prepare: { world in
                for host in hosts { world.succeed(hostFeature, at: host) }
                if let defaults { world.succeed(defaults, at: 0) }
            }
        )
    }

    private static func request(
        _ factor: ClosedRange<UInt16>,
        latency: UInt16 = 0,
        continuation: UInt16 = 0,
        timeout: UInt16 = 400
    ) -> LESubrateRequest {
        LESubrateRequest(
            connectionHandle: LinkWorld.handle,
            subrateMin: factor.lowerBound,
            subrateMax: factor.upperBound,
            maxLatency: latency,
            continuationNumber: continuation,
            supervisionTimeout: timeout
        )
    }

    private static func changed(
        _ factor: UInt8,
        latency: UInt8 = 0,
        continuation: UInt8 = 0,
        status: UInt8 = 0
    ) -> [UInt8] {
        [0x04, 0x3E, 0x0C, 0x23, status, 0x40, 0x00, factor, 0, latency, 0, continuation, 0, 0x90, 0x01]
    }

    // MARK: Procedures

    @Test func requestOfTheCentralIsReportedToBothHosts() {
        let link = Self.subratable()
        link.world.send(Self.request(2...10, latency: 1, continuation: 3), to: 0)
        #expect(link.packets(0) == [[0x04, 0x0F, 0x04, 0x00, 0x01, 0x7E, 0x20]])
        link.run(.milliseconds(200))
        #expect(link.told(0).last == Self.changed(10, latency: 1, continuation: 3))
        #expect(link.told(1) == [Self.changed(10, latency: 1, continuation: 3)])
    }

    @Test func centralDecidesWithinTheDefaultsOfItsHost() {
        let defaults = LESetDefaultSubrate(
            subrateMin: 1,
            subrateMax: 6,
            maxLatency: 2,
            continuationNumber: 1,
            supervisionTimeout: 400
        )
        let link = Self.subratable(defaults: defaults)
        link.world.send(Self.request(4...20, latency: 1), to: 1)
        link.run(.milliseconds(300))
        #expect(link.told(1).last == Self.changed(6, latency: 1, continuation: 1))
        #expect(link.told(0) == [Self.changed(6, latency: 1, continuation: 1)])
        // Nothing in common with 1 to 6.
        link.world.send(Self.request(7...20), to: 1)
        link.run(.seconds(1))
        #expect(link.told(1).last == Self.changed(6, latency: 1, continuation: 1, status: 0x20))
    }

    @Test func centralWithoutDefaultsAcceptsNoSubrating() {
        let link = Self.subratable()
        link.world.send(Self.request(2...4), to: 1)
        link.run(.milliseconds(300))
        #expect(link.told(1).last == Self.changed(1, status: 0x20))
        #expect(link.told(0).isEmpty)
    }

    @Test func lastRequestOfTheCentralIsWhatItAccepts() {
        let link = Self.subratable()
        link.world.send(Self.request(2...8), to: 0)
        link.run(.milliseconds(500))
        link.world.send(Self.request(3...5), to: 1)
        link.run(.seconds(1))
        #expect(link.told(1).last == Self.changed(5))
        #expect(link.told(0).last == Self.changed(5))
    }

    @Test(
        arguments: [
            (UncheckedRange(first: 0, last: 4), 0, 0, 400, 0x12),
            (UncheckedRange(first: 4, last: 3), 0, 0, 400, 0x12),
            (UncheckedRange(first: 1, last: 501), 0, 0, 3200, 0x12),
            (UncheckedRange(first: 1, last: 251), 1, 0, 3200, 0x12),
            (UncheckedRange(first: 1, last: 4), 0, 4, 400, 0x12),
            (UncheckedRange(first: 1, last: 4), 0, 0, 9, 0x12),
            (UncheckedRange(first: 1, last: 100), 0, 0, 600, 0x12),
            (UncheckedRange(first: 1, last: 100), 0, 0, 601, 0x00),
        ] as [(UncheckedRange, UInt16, UInt16, UInt16, UInt8)]
    )
    func parametersOutOfRangeAreInvalid(
        factor: UncheckedRange,
        latency: UInt16,
        continuation: UInt16,
        timeout: UInt16,
        status: UInt8
    ) {
        let link = Self.subratable()
        let command = LESubrateRequest(
            connectionHandle: LinkWorld.handle,
            subrateMin: factor.first,
            subrateMax: factor.last,
            maxLatency: latency,
            continuationNumber: continuation,
            supervisionTimeout: timeout
        )
        #expect(link.world.send(command, to: 0) == [[0x04, 0x0F, 0x04, status, 0x01, 0x7E, 0x20]])
    }

    @Test func hostsThatLackTheFeatureAreRefused() {
        let own = Self.subratable(hosts: [1])
        #expect(own.world.send(Self.request(1...4), to: 0) == [[0x04, 0x0F, 0x04, 0x0C, 0x01, 0x7E, 0x20]])
        let peer = Self.subratable(hosts: [0])
        #expect(peer.world.send(Self.request(1...4), to: 0) == [[0x04, 0x0F, 0x04, 0x1A, 0x01, 0x7E, 0x20]])
        // No connection may exist when a host sets its features.
        #expect(peer.world.status(of: Self.hostFeature, to: 1) == .commandDisallowed)
    }

    @Test func featuresOfTheHostAreThoseThatTheControllerSupports() {
        let world = World(count: 1) { $0.features.remove(.advertisingCodingSelection) }
        #expect(world.status(of: Self.hostFeature, to: 0) == .success)
        for bit: UInt8 in [37, 41, 64, 255] {
            let command = LESetHostFeature(bitNumber: bit, bitValue: true)
            #expect(world.status(of: command, to: 0) == .unsupportedFeatureOrParameterValue)
        }
        #expect(world.controllers[0].linkFeatures.contains(.connectionSubratingHostSupport))
        world.succeed(LESetHostFeature(bitNumber: 38, bitValue: false), at: 0)
        #expect(!world.controllers[0].linkFeatures.contains(.connectionSubratingHostSupport))
    }

    // MARK: Effects on data

    /// Sends a packet of the central, and returns how long it takes until the peripheral has it.
    private static func delay(of link: LinkWorld) throws -> Duration {
        let before = link.received(1).count
        link.send(.init(1, count: 8), from: 0)
        return try #require(link.run { link.received(1).count > before })
    }

    @Test func dataWaitsForASubratedEvent() throws {
        let link = Self.subratable()
        #expect(try Self.delay(of: link) <= .milliseconds(31))
        link.world.send(Self.request(10...10), to: 0)
        link.run(.seconds(1))
        var delays: [Duration] = []
        for _ in 0..<20 {
            link.run(.milliseconds(310))
            delays.append(try Self.delay(of: link))
            link.run(.milliseconds(70))
        }
        // Ten intervals of 30 ms lie between used events.
        #expect(delays.allSatisfy { $0 <= .milliseconds(301) })
        #expect(delays.contains { $0 > .milliseconds(200) })
    }

    @Test func eventsAfterDataAreUsedForTheContinuationNumber() throws {
        let link = Self.subratable()
        link.world.send(Self.request(10...10, continuation: 4), to: 0)
        link.run(.seconds(1))
        _ = try Self.delay(of: link)
        // The next packets follow at the interval, as each keeps the next four events in use.
        for _ in 0..<8 {
            link.run(.milliseconds(60))
            #expect(try Self.delay(of: link) <= .milliseconds(31))
        }
        // After five intervals without data, only subrated events are used.
        var delays: [Duration] = []
        for round in 0..<10 {
            link.run(.milliseconds(170 + 30 * round))
            delays.append(try Self.delay(of: link))
        }
        #expect(delays.contains { $0 > .milliseconds(100) } && delays.allSatisfy { $0 <= .milliseconds(301) })
    }

    @Test func anotherIntervalEndsSubrating() throws {
        let link = Self.subratable()
        link.world.send(Self.request(10...10), to: 0)
        link.run(.seconds(1))
        let update = LEConnectionUpdate(
            connectionHandle: LinkWorld.handle,
            connectionIntervalMin: 16,
            connectionIntervalMax: 16,
            supervisionTimeout: 400
        )
        link.world.send(update, to: 0)
        link.run(.seconds(10))
        #expect(link.central.end(LinkWorld.handle)?.link.subrate.factor == 1)
        for _ in 0..<10 {
            link.run(.milliseconds(97))
            #expect(try Self.delay(of: link) <= .milliseconds(21))
        }
    }

    /// The factor counts although another interval than 30 ms ends subrating.
    @Test(arguments: [(24, 60, 0x12), (24, 61, 0x00), (16, 40, 0x12), (16, 41, 0x00)] as [(UInt16, UInt16, UInt8)])
    func updateOfASubratedLinkNeedsALongTimeout(interval: UInt16, timeout: UInt16, status: UInt8) {
        let link = Self.subratable()
        link.world.send(Self.request(10...10), to: 0)
        link.run(.seconds(1))
        let update = LEConnectionUpdate(
            connectionHandle: LinkWorld.handle,
            connectionIntervalMin: interval,
            connectionIntervalMax: interval,
            supervisionTimeout: timeout
        )
        #expect(link.world.send(update, to: 0) == [[0x04, 0x0F, 0x04, status, 0x01, 0x13, 0x20]])
    }

    @Test func subratedLinkOutlivesSilenceAndEndsAtItsTimeout() {
        let link = Self.subratable()
        link.world.send(Self.request(20...20), to: 0)
        link.run(.seconds(60))
        #expect(link.told(0).last == Self.changed(20))
        link.world.controllers[1].vanish()
        link.run(.seconds(6))
        #expect(link.told(0).last == [0x04, 0x05, 0x04, 0x00, 0x40, 0x00, 0x08])
    }
}

/// A range whose bounds need not be in order.
struct UncheckedRange: Sendable, CustomTestStringConvertible {
    let first: UInt16
    let last: UInt16
    var testDescription: String { "\(first) to \(last)" }
}
