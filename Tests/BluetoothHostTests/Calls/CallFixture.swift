import BLEGATT
import BLEHCI
import BluetoothHost
import BluetoothTypes
import Testing

/// A host with one link. Its controller returns buffers only on request of the test.
final class CallFixture {
    static let handle = ConnectionHandle(0x0040)

    let fixture: HostFixture
    let link: LinkIdentifier
    var host: BluetoothHost { fixture.host }

    init(
        buffers: UInt8 = 4,
        role: BLEHCI.Role = .peripheral,
        configure: (inout BluetoothHost.Configuration) -> Void = { _ in }
    ) throws {
        var profile = ScriptedController.Profile()
        profile.leBuffers = (27, buffers)
        fixture = HostFixture(profile: profile) {
            $0.outboundFrameLimit = 2
            $0.requestsMTU = false
            configure(&$0)
        }
        try fixture.bringUp()
        let host = fixture.host
        if role == .central {
            // A link that no call asked for would be ended immediately.
            _ = fixture.start {
                try await host.connect(toAnyOf: [HostFixture.peer], parameters: ConnectionParameters(), timeout: nil)
            }
        }
        fixture.connect(role: role)
        link = try fixture.link()
    }

    /// The ATT PDUs that left the host since the last call.
    func takeSent() -> [[UInt8]] {
        defer { fixture.controller.forgetData() }
        return fixture.controller.data.filter { $0.count > 9 && $0[7] == 4 }.map { Array($0.dropFirst(9)) }
    }

    /// Lets the controller return buffers until the host has nothing left to send, and returns what it sent.
    func drain() -> [[UInt8]] {
        var sent = takeSent()
        for _ in 0..<400 {
            complete(1)
            sent += takeSent()
        }
        return sent
    }

    func complete(_ count: UInt16) {
        fixture.controller.emit {
            NumberOfCompletedPackets.encodePacket(
                .init(connectionHandle: CallFixture.handle, numCompletedPackets: count),
                into: &$0
            )
        }
        fixture.loop.run(for: .milliseconds(1))
    }

    /// Lets the peer send a PDU.
    func receive(_ pdu: [UInt8], channel: UInt16 = 4) {
        fixture.controller.emit(HostFixture.acl(pdu, channel: channel))
        fixture.loop.run(for: .milliseconds(1))
    }

    /// Publishes a characteristic that supports notifications and indications, and makes the client configure it.
    func publishSubscribed(_ configuration: UInt8 = 3) throws -> AttributeHandle {
        let host = host
        let service = ServiceDefinition(
            uuid: "FFF0",
            characteristics: [
                CharacteristicDefinition(
                    uuid: "FFF1",
                    properties: [.read, .notify, .indicate],
                    permissions: .read,
                    value: .handled
                )
            ]
        )
        let accesses = accesses
        let published = try fixture.run {
            try await host.publish([service]) { _, request in accesses.append(request.identifier) }
        }
        let characteristic = try #require(published.first?.characteristics.first)
        let descriptor = try #require(characteristic.clientConfigurationHandle).rawValue
        receive([0x12, UInt8(descriptor & 0xFF), UInt8(descriptor >> 8), configuration, 0])
        complete(1)
        fixture.controller.forgetData()
        return characteristic.valueHandle
    }

    /// The identifiers of the client's accesses to the published characteristic.
    let accesses = Recorder<UInt64>()

    /// Starts `body` in a cancellable task on the loop; the recorder gets its outcome.
    func startTask(_ body: @escaping @Sendable () async throws -> Void) -> (Task<Void, Never>, Recorder<HostError?>) {
        fixture.startTask(body)
    }
}

extension AttributeHandle {
    var bytes: [UInt8] { [UInt8(rawValue & 0xFF), UInt8(rawValue >> 8)] }
}
