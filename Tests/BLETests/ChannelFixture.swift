import BLE
import BLEL2CAP
import BluetoothTesting
import Testing

/// Two connected devices of a world. The peripheral has a service for channels.
struct ChannelFixture: Sendable {
    let world: World
    let near: Adapter
    let far: Adapter
    let farDevice: Device
    /// The far device, as a peripheral that the near device is connected to.
    let peer: RemotePeripheral
    let listener: ChannelListener
    private let advertising: AdvertisingSet

    init(
        in world: World,
        configuration: L2CAPChannel.Configuration = .init(),
        security: ChannelSecurity = .init()
    ) async throws {
        self.world = world
        farDevice = world.device("far")
        near = try await world.device("near").openAdapter()
        far = try await farDevice.openAdapter()
        listener = try await far.peripheral.publishChannel(configuration: configuration, security: security)
        advertising = try await far.peripheral.startAdvertising(AdvertisementConfiguration(interval: .milliseconds(20)))
        peer = try await near.central.connect(to: farDevice.address)
    }

    /// Opens a channel.
    ///
    /// - Returns: both ends of it.
    func open(
        configuration: L2CAPChannel.Configuration = .init()
    ) async throws -> (near: L2CAPChannel, far: L2CAPChannel) {
        let near = try await peer.openChannel(psm: listener.psm, configuration: configuration)
        return (near, try await accept())
    }

    /// Waits for the next channel that is opened to the far device.
    func accept() async throws -> L2CAPChannel {
        var iterator = listener.makeAsyncIterator()
        return try #require(await iterator.next())
    }
}

/// Bytes that depend on their position.
func pattern(_ count: Int, salt: Int = 0) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8 ^ $0 >> 16 &+ salt) }
}

extension L2CAPChannel {
    /// Reads until the end of the channel.
    func readToEnd() async throws(BLEError) -> [UInt8] {
        var octets: [UInt8] = []
        for try await unit in self { octets += unit }
        return octets
    }

    /// Reads at least `count` bytes.
    func read(_ count: Int) async throws(BLEError) -> [UInt8] {
        var octets: [UInt8] = []
        for try await unit in self {
            octets += unit
            if octets.count >= count { break }
        }
        return octets
    }
}
