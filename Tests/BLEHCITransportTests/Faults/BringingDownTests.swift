import BluetoothTypes
import FaultInjection
import Testing

@testable import BLEHCITransport

@Suite("The opening of a kernel adapter")
struct BringingDownTests {
    private static let address = DeviceAddress(0x001A_7DDA_7101, isRandom: false)

    /// Opens an adapter on a socket that accepts every request.
    ///
    /// - Returns: whether the adapter was brought down, which is the only request by `ioctl`.
    private func bringsDown(_ open: () throws -> Void) throws -> Bool {
        let (own, other) = try makeSockets()
        let peer = OwnedDescriptor(other)
        defer { withExtendedLifetime(peer) {} }
        let faults = [
            Fault(.socket, .returns(Int(own))), Fault(.ioctl, .returns(0)), Fault(.bind, .returns(0)),
            Fault(.setsockopt, .returns(0)),
        ]
        let trial = FaultRun(faults, of: open)
        try trial.result.get()
        return !trial.unused.contains { $0.call == .ioctl }
    }

    @Test(
        arguments: [
            (.user, false, false), (.user, true, true), (.raw, false, false), (.raw, true, false),
        ] as [(AdapterSpecification.Channel, Bool, Bool)]
    )
    func onlyTheUserChannelBringsItDown(
        channel: AdapterSpecification.Channel,
        isRequested: Bool,
        isDown: Bool
    ) throws {
        let bringsDown = try bringsDown {
            _ = try openHCISocket(index: 1, channel: channel, bringsDown: isRequested)
        }
        #expect(bringsDown == isDown)
    }

    @Test(
        arguments: [
            (.address(address, channel: .user), false, false), (.address(address, channel: .user), true, true),
            (.address(address, channel: .raw), true, false), (.automatic, false, true), (.automatic, true, true),
        ] as [(AdapterSpecification, Bool, Bool)]
    )
    func adapterThatWasFoundIsBroughtDownIfRequestedAndByAuto(
        specification: AdapterSpecification,
        isRequested: Bool,
        isDown: Bool
    ) throws {
        var adapter = KernelAdapter(index: 1)
        adapter.address = Self.address
        var inventory = AdapterInventory()
        inventory.adapters = [adapter]
        let options = TransportOptions(bringsAdapterDown: isRequested)
        let bringsDown = try bringsDown {
            let opened = try specification.openCandidate(in: inventory, options: options)
            #expect(opened.adapter.index == 1)
        }
        #expect(bringsDown == isDown)
    }
}
