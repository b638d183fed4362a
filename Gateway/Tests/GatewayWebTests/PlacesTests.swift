import NIOCore
import NIOEmbedded
import Testing

@testable import GatewayWeb

struct PlacesTests {
    private func channel(_ address: String) throws -> EmbeddedChannel {
        let channel = EmbeddedChannel()
        let remote = try SocketAddress(ipAddress: address, port: 1)
        try channel.connect(to: remote).wait()
        channel.remoteAddress = remote
        return channel
    }

    @Test func oldestConnectionOfTheBusiestNetworkIsDisplaced() throws {
        let places = ConnectionPlaces(limit: 3)
        let other = try channel("10.0.0.1")
        let many = try (0..<3).map { _ in try channel("10.0.0.2") }
        for each in [other] + many { places.add(each) }
        #expect(places.count == 3)
        #expect(other.isActive && !many[0].isActive && many[1].isActive && many[2].isActive)
        for each in [other] + many { _ = try each.finish(acceptAlreadyClosed: true) }
    }

    @Test func connectionsOfOneAddressDoNotDisplaceOthersOfTheSameNetwork() throws {
        let places = ConnectionPlaces(limit: 3)
        let other = try channel("fe80::1")
        let many = try (0..<3).map { _ in try channel("fe80::2") }
        for each in [other] + many { places.add(each) }
        #expect(other.isActive && !many[0].isActive && many[1].isActive && many[2].isActive)
        for each in [other] + many { _ = try each.finish(acceptAlreadyClosed: true) }
    }

    @Test func connectionsAreClosedAtTheEnd() throws {
        let places = ConnectionPlaces(limit: 3)
        let (first, second) = (try channel("10.0.0.1"), try channel("10.0.0.1"))
        places.add(first)
        places.close()
        places.add(second)
        #expect(!first.isActive && !second.isActive)
        for each in [first, second] { _ = try each.finish(acceptAlreadyClosed: true) }
    }

    @Test func removedConnectionNeedsNoPlace() throws {
        let places = ConnectionPlaces(limit: 1)
        let (first, second) = (try channel("10.0.0.1"), try channel("10.0.0.1"))
        places.add(first)
        places.remove(first)
        places.add(second)
        #expect(first.isActive && second.isActive)
        for each in [first, second] { _ = try each.finish(acceptAlreadyClosed: true) }
    }
}
