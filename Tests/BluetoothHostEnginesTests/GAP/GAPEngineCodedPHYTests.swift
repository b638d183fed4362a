import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// Peers and trains that a scan has received on another PHY than LE 1M, or on LE 1M.
@Suite("Searches and links on other PHYs than LE 1M")
struct GAPEngineCodedPHYTests {
    private let peer = GAPSample.address(1)
    private static let both: PHYSet = [.le1M, .leCoded]

    /// A world in which a scan has received a device on a PHY.
    ///
    /// - Parameter secondaryPHY: the secondary PHY; nil for the same PHY.
    private func world(_ device: DeviceAddress, on phy: PHY, secondaryPHY: PHY? = nil) -> GAPWorld {
        var world = GAPWorld.on(isExtended: true, hasCodedPHY: true)
        world.information.commands.insert(LEPeriodicAdvertisingCreateSync.opcode)
        world.startScan(1, ScanOptions(phys: Self.both))
        world.receiveAdvertisement(of: device, on: phy, secondaryPHY: secondaryPHY ?? phy)
        world.stopScan(1)
        world.settle()
        return world
    }

    @Test(arguments: [PHY.leCoded, .le1M]) func peerIsSearchedForOnThePHYOnWhichItWasReceived(phy: PHY) {
        let identity = AddressPlanFixture.peer(1)
        var world = world(identity, on: phy)
        world.bond([1])
        world.connect(1, to: identity)
        world.settle()
        #expect(world.controller.scan.isOn)
        #expect(world.controller.scan.phys == (phy == .leCoded ? Self.both : .le1M))
        let found = DeviceAddress(0x4000_0000_0001, isRandom: true)
        world.perform(world.engine.resolved(identity, at: found, world.context))
        world.settle()
        #expect(world.controller.initiator.state == .initiating([found]) && !world.controller.scan.isOn)
        #expect(world.controller.initiator.usesCodedPHY == (phy == .leCoded))
    }

    @Test(arguments: [PHY.leCoded, .le1M]) func trainIsSearchedForOnThePHYOnWhichItWasReceived(phy: PHY) throws {
        var world = world(peer, on: phy)
        try world.synchronize(1, with: peer)
        world.settle()
        #expect(world.controller.isCreatingSynchronization && world.controller.scan.isOn)
        #expect(world.controller.scan.phys == (phy == .leCoded ? Self.both : .le1M))
    }

    @Test(arguments: [PHY.leCoded, .le1M]) func physOfALinkThatMayUseLECodedAreRead(phy: PHY) {
        var world = world(peer, on: phy)
        world.connect(1, to: peer)
        world.settle()
        world.controller.initiator.state = .idle
        let link = GAPWorld.link(0x40)
        world.perform(world.engine.linkBegan(link, asCentral: true, with: [peer], world.context))
        #expect(world.effects.contains(.readPHYs(link)) == (phy == .leCoded))
    }

    @Test(arguments: [PHY.le2M, .le1M]) func physOfEachLinkToAPeerAreReadWithoutANewReport(phy: PHY) {
        var world = world(peer, on: .le1M, secondaryPHY: phy)
        // The start of a scan makes the engine forget earlier reports, and so does the end of a link.
        world.startScan(2)
        for number in 1...2 as ClosedRange<UInt64> {
            world.connect(number, to: peer)
            world.settle()
            world.controller.initiator.state = .idle
            let link = GAPWorld.link(0x40 + UInt16(number))
            world.perform(world.engine.linkBegan(link, asCentral: true, with: [peer], world.context))
            #expect(world.effects.contains(.readPHYs(link)) == (phy == .le2M))
            world.perform(world.engine.linkEnded(link, with: [peer], world.context))
            world.settle()
        }
    }

    @Test(arguments: [PHY.leCoded, .le1M]) func physOfALinkToAnAdvertisementOnLECodedAreRead(phy: PHY) throws {
        var world = GAPWorld.on(isExtended: true, hasCodedPHY: true)
        var configuration = AdvertisementConfiguration()
        configuration.phys.secondary = phy
        try world.advertise(1, configuration)
        world.settle()
        let link = GAPWorld.link(0x40)
        world.perform(world.engine.linkBegan(link, asCentral: false, with: [peer], world.context))
        #expect(world.effects.contains(.readPHYs(link)) == (phy == .leCoded))
    }
}
