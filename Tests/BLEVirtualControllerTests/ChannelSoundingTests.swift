import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

@Suite("Channel Sounding of software controllers")
struct ChannelSoundingTests {
    private static func create(isSentToPeer: Bool) -> LinkWorld {
        let link = LinkWorld(
            configure: { $0.features.insert(.channelSounding) },
            prepare: { world in
                for host in 0...1 { world.succeed(LESetHostFeature(bitNumber: 47, bitValue: true), at: host) }
            }
        )
        for (host, role) in [ChannelSoundingRoles.initiator, .reflector].enumerated() {
            link.world.send(LECSSetDefaultSettings(connectionHandle: LinkWorld.handle, roleEnable: role), to: host)
        }
        link.world.forget()
        let command = LECSCreateConfig(
            connectionHandle: LinkWorld.handle,
            configID: 1,
            isSentToPeer: isSentToPeer,
            configuration: ChannelSoundingConfiguration()
        )
        link.world.send(command, to: 0)
        link.run(.milliseconds(200))
        return link
    }

    /// The beginnings of the configuration's events: status, handle, identifier and whether it is created.
    private static func configurations(_ link: LinkWorld, _ host: Int) -> [ArraySlice<UInt8>] {
        link.told(host).filter { $0.count > 8 && $0[1] == 0x3E && $0[3] == 0x2F }.map { $0[4..<9] }
    }

    @Test(arguments: [true, false]) func configurationIsCreatedAtThePeerIfTheHostAsksForIt(isSentToPeer: Bool) {
        let link = Self.create(isSentToPeer: isSentToPeer)
        let created: [ArraySlice<UInt8>] = [[0x00, 0x40, 0x00, 0x01, 0x01]]
        #expect(Self.configurations(link, 0) == created)
        #expect(Self.configurations(link, 1) == (isSentToPeer ? created : []))
    }
}
