import BLEGATT
import BluetoothHost
import BluetoothTypes
import Testing

@Suite("Values of a service that is removed before they are sent")
struct RemovedServiceValueTests {
    /// The handle of the service that ``CallFixture/publishSubscribed(_:)`` has published. The declarations of the
    /// service and of the characteristic precede the value.
    private func service(of value: AttributeHandle) -> AttributeHandle { AttributeHandle(value.rawValue - 2) }

    @Test("They are not sent as values of the service that gets the handles")
    func valuesAreNotSentForTheNextService() throws {
        let calls = try CallFixture(buffers: 1)
        let (host, link) = (calls.host, calls.link)
        let handle = try calls.publishSubscribed()
        let outcomes = (0..<UInt8(5)).map { number in
            calls.fixture.start { try await host.notify([number], of: handle, to: [link]) }
        }
        // The controller has one frame, and the outbound queue two.
        #expect(calls.takeSent() == [[0x1B] + handle.bytes + [0]])
        let removed = service(of: handle)
        let next = try calls.fixture.run {
            await host.removeService(at: removed)
            let characteristic = CharacteristicDefinition(
                uuid: "FFF2",
                properties: [.read, .notify],
                permissions: .read,
                value: .handled
            )
            let services = try await host.publish([ServiceDefinition(uuid: "FFF3", characteristics: [characteristic])])
            return services[0].characteristics[0].valueHandle
        }
        #expect(next == handle, "the test needs the handle to be used again")
        let descriptor = AttributeHandle(handle.rawValue + 1)
        calls.receive([0x12] + descriptor.bytes + [1, 0])
        #expect(calls.drain() == [[0x1B] + handle.bytes + [1], [0x1B] + handle.bytes + [2], [0x13]])
        for outcome in outcomes {
            #expect(outcome.all.count == 1)
            #expect(throws: Never.self) { try outcome.all.first?.get() }
        }
    }

    @Test("Values of other services that wait behind them are sent")
    func valuesOfOtherServicesAreSent() throws {
        let calls = try CallFixture()
        let (host, link) = (calls.host, calls.link)
        let (handle, other) = (try calls.publishSubscribed(), try calls.publishSubscribed())
        let indications = (0..<UInt8(2)).map { number in
            calls.fixture.start { try await host.indicate([number], of: handle, to: link) }
        }
        _ = calls.fixture.start { try await host.notify([7], of: other, to: [link]) }
        #expect(calls.drain() == [[0x1D] + handle.bytes + [0]])
        let removed = service(of: handle)
        try calls.fixture.run { await host.removeService(at: removed) }
        #expect(calls.drain() == [[0x1B] + other.bytes + [7]])
        #expect(indications[0].all.isEmpty, "the client has not confirmed it")
        #expect(indications[1].all.count == 1)
        #expect(throws: Never.self) { try indications[1].all.first?.get() }
        calls.receive([0x1E])
        #expect(indications[0].all.count == 1)
    }
}
