import BluetoothTypes
import FaultInjection
import Glibc
import Testing

@testable import BLEHCITransport

@Suite("A fault of the system, on the management socket,", .timeLimit(.minutes(5)))
struct ManagementFaultTests {
    /// A socket in place of the kernel's, and the kernel's end of it.
    private func sockets() throws -> (ManagementSocket, OwnedDescriptor) {
        let (own, other) = try makeSockets(preservingPackets: true)
        _ = fcntl(own, F_SETFL, O_NONBLOCK)
        return (ManagementSocket(OwnedDescriptor(own)), OwnedDescriptor(other))
    }

    @Test(
        "means that there is none, or that an adapter has no address, or is overcome",
        arguments: [
            (Fault(.send, .fails(EINTR), count: 3), true), (Fault(.send, .fails(ENOBUFS)), false),
            (Fault(.poll, .fails(EINTR), count: 3), true), (Fault(.poll, .fails(ENOMEM)), false),
            (Fault(.poll, .returns(0)), false), (Fault(.read, .fails(EINTR), count: 3), true),
            (Fault(.read, .fails(EIO)), false), (Fault(.read, .returns(0)), false),
        ] as [(Fault, Bool)]
    )
    func faultLeavesTheAddressUnknown(fault: Fault, isOvercome: Bool) throws {
        let (socket, kernel) = try sockets()
        for message in [[0x04, 0x00, 0x05, 0x00, 0x00, 0x00], ManagementMessageTests.answer()] {
            _ = try send(kernel.number, message.rawSpan).get()
        }
        let trial = FaultRun([fault]) { socket.readInformation(index: 2) }
        #expect(trial.unused.isEmpty)
        #expect(try (trial.result.get()?.address != nil) == isOvercome)
    }

    @Test(
        "prevents its opening",
        arguments: [[Fault(.socket, .fails(EAFNOSUPPORT))], [Fault(.bind, .fails(EPERM))]]
    )
    func faultPreventsOpening(faults: [Fault]) throws {
        let (own, other) = try makeSockets()
        let peer = OwnedDescriptor(other)
        let socket = faults[0].call == .bind ? [Fault(.socket, .returns(Int(own)))] : []
        let trial = FaultRun(socket + faults) { ManagementSocket.open() == nil }
        #expect(try trial.result.get())
        #expect(trial.unused.isEmpty)
        if socket.isEmpty { _ = close(own) }
        var buffer: [UInt8] = [0]
        #expect(read(peer.number, into: &buffer, from: 0) == .success(0))
    }

    @Test("An address that the kernel reports there only is part of the inventory")
    func addressOfTheManagementInterfaceIsPartOfTheInventory() throws {
        let (socket, kernel) = try sockets()
        var inventory = AdapterInventory()
        for index in [1, 2] {
            var adapter = KernelAdapter(index: index)
            adapter.flags = []
            inventory.adapters.append(adapter)
        }
        // The first adapter is on a user channel: Invalid Index.
        for message in [ManagementMessageTests.answer(index: 1, status: 0x11, []), ManagementMessageTests.answer()] {
            _ = try send(kernel.number, message.rawSpan).get()
        }
        inventory.addAddresses(from: socket)
        #expect(inventory.adapters.map(\.address?.description) == [nil, "00:1A:7D:DA:71:13"])
    }

    @Test("An answer is not awaited behind messages without end")
    func messagesWithoutEndAreNotReadWithoutEnd() throws {
        let (socket, kernel) = try sockets()
        for _ in 0..<70 { _ = try send(kernel.number, [0x04, 0x00, 0x05, 0x00, 0x00, 0x00].rawSpan).get() }
        _ = try send(kernel.number, ManagementMessageTests.answer().rawSpan).get()
        #expect(socket.readInformation(index: 2) == nil)
    }

    // MARK: Candidates

    @Test("or an adapter in use, leads to the next free adapter")
    func adapterInUseLeadsToTheNext() throws {
        let sockets = try [makeSockets(), makeSockets()]
        let peers = sockets.map { OwnedDescriptor($0.1) }
        var inventory = AdapterInventory()
        inventory.adapters = [KernelAdapter(index: 0), KernelAdapter(index: 3)]
        let trial = FaultRun([
            Fault(.socket, .returns(Int(sockets[0].0)), count: 1),
            Fault(.socket, .returns(Int(sockets[1].0)), after: 1),
            Fault(.bind, .fails(EBUSY), count: 11), Fault(.bind, .returns(0), after: 11), Fault(.poll, .returns(0)),
        ]) {
            try AdapterSpecification.automatic.openCandidate(in: inventory, options: TransportOptions()).specification
        }
        #expect(try trial.result.get() == .hci(index: 3, channel: .user))
        #expect(trial.unused.isEmpty)
        withExtendedLifetime(peers) {}
    }

    @Test("that every adapter has is named for each")
    func errorNamesTheReasonForEachAdapter() {
        var inventory = AdapterInventory()
        inventory.adapters = [KernelAdapter(index: 0), KernelAdapter(index: 3)]
        let trial = FaultRun([Fault(.socket, .fails(EMFILE))]) {
            _ = try AdapterSpecification.automatic.openCandidate(in: inventory, options: TransportOptions())
        }
        #expect(
            trial.message == "no adapter is free: hci0 cannot be opened (Too many open files), "
                + "hci3 cannot be opened (Too many open files); `ble doctor` shows what to do"
        )
        let denied = FaultRun([Fault(.socket, .fails(EPERM))]) {
            _ = try AdapterSpecification.automatic.openCandidate(in: inventory, options: TransportOptions())
        }
        #expect(denied.message == TransportError.permissionDenied("the HCI socket of hci0").description)
    }
}
