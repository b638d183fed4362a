import BluetoothTypes
import GATT
import HCI
import Testing

@testable import BluetoothHost

@Suite("The outbox")
struct OutboxTests {
    private let link = LinkIdentifier(handle: 0x0040, serial: 1)

    private func write(to link: LinkIdentifier) -> WriteCall {
        WriteCall(frame: { _, _ in }, link: link, awaitsProof: true, caller: .outbox)
    }

    private let notification = Notification(value: [], handle: 0x0003, clients: nil, caller: nil)

    @Test("A write is posted to a link only while its gate is open, and if it is not too long")
    func gate() {
        let outbox = Outbox()
        #expect(outbox.post(write(to: link), length: 1) == .refused)
        outbox.openGate(to: link, greatestLength: 20)
        #expect(outbox.post(write(to: link), length: 21) == .refused)
        #expect(outbox.post(write(to: link), length: 20) == .postedFirst)
        #expect(outbox.post(write(to: LinkIdentifier(handle: 0x0040, serial: 2)), length: 1) == .refused)
        outbox.closeGate(to: link)
        #expect(outbox.post(write(to: link), length: 1) == .refused)
        #expect(outbox.takePosts().count == 1)
    }

    @Test("So many writes to a link are posted, and as many notifications; each that is sent lets another be posted")
    func limit() {
        let outbox = Outbox()
        let other = LinkIdentifier(handle: 0x0041, serial: 2)
        outbox.openGate(to: link, greatestLength: 20)
        outbox.openGate(to: other, greatestLength: 20)
        for _ in 0..<Outbox.limit { #expect(outbox.post(write(to: link), length: 1) != .refused) }
        #expect(outbox.post(write(to: link), length: 1) == .refused)
        outbox.openGate(to: link, greatestLength: 30)
        #expect(outbox.post(write(to: link), length: 1) == .refused)
        #expect(outbox.post(write(to: other), length: 1) == .posted)
        outbox.wrotePost(to: link)
        #expect(outbox.post(write(to: link), length: 30) == .posted)
        #expect(outbox.post(write(to: link), length: 1) == .refused)

        for _ in 0..<Outbox.limit { #expect(outbox.post(notification) == .posted) }
        #expect(outbox.post(notification) == .refused)
        outbox.sentNotification()
        #expect(outbox.post(notification) == .posted)
        #expect(outbox.takePosts().count == 2 * Outbox.limit + 3)
    }

    @Test("The loop is told of what is posted after it has taken all")
    func telling() {
        let outbox = Outbox()
        #expect(outbox.takePosts().isEmpty)
        #expect(outbox.post(notification) == .postedFirst)
        #expect(outbox.post(notification) == .posted)
        #expect(outbox.takePosts().count == 2)
        #expect(outbox.post(notification) == .postedFirst)
    }
}

/// The tests run outside of the loop, which does nothing meanwhile.
@Suite("A host with an outbox")
struct PostingTests {
    private let fixture = HostFixture { $0.outboundFrameLimit = 2 }

    private func connect() throws -> LinkIdentifier {
        try fixture.bringUp()
        fixture.connect()
        let host = fixture.host
        return try #require(try fixture.run { await host.linkIdentifiers() }.first)
    }

    /// The ATT PDUs that the host has sent, with all that waits for the controller to give packets back.
    private func sentPDUs() -> [[UInt8]] {
        for _ in 0..<40 {
            fixture.controller.emit {
                NumberOfCompletedPackets.encodePacket(
                    .init(connectionHandle: 0x0040, numCompletedPackets: 1),
                    into: &$0
                )
            }
            fixture.loop.run(for: .milliseconds(1))
        }
        return fixture.controller.data.map { Array($0.dropFirst(9)) }
    }

    @Test("What is asked for after writes were posted is sent after them")
    func order() async throws {
        let (host, link) = (fixture.host, try connect())
        host.outbox.openGate(to: link, greatestLength: 20)
        for number in 0..<UInt8(12) { try await host.writeWithoutResponse([number], to: 0x0003, on: link) }
        #expect(fixture.controller.data.isEmpty)
        let read = fixture.start { try await host.perform(ReadValue(handle: 0x0005), on: link) }
        // As many as the controller has buffers.
        #expect(fixture.controller.data.count == 4)
        let flushed = fixture.start { await host.flush(link) }
        #expect(flushed.all.isEmpty)
        let writes: [[UInt8]] = (0..<12).map { [0x52, 0x03, 0x00, $0] }
        #expect(sentPDUs() == writes + [[0x0A, 0x05, 0x00]])
        #expect(flushed.all.count == 1)
        _ = fixture.exchange([0x0B, 0x07])
        #expect(try read.all.first?.get() == [0x07])
        // All of them have been sent, so that as many may be posted again.
        for _ in 0..<Outbox.limit { try await host.writeWithoutResponse([0], to: 0x0003, on: link) }
        #expect(sentPDUs().filter { $0 == [0x52, 0x03, 0x00, 0] }.count == Outbox.limit)
    }

    @Test("An indication is sent after notifications that were posted")
    func indication() async throws {
        let (host, link) = (fixture.host, try connect())
        let service = ServiceDefinition(
            uuid: "FFF0",
            characteristics: [
                CharacteristicDefinition(
                    uuid: "FFF1",
                    properties: [.notify, .indicate],
                    permissions: [],
                    value: .stored([])
                )
            ]
        )
        let published = try fixture.run { try await host.publish([service], handler: nil) }
        let characteristic = try #require(published.first?.characteristics.first)
        let descriptor = try #require(characteristic.clientConfigurationHandle).rawValue
        let configuration = [0x12, UInt8(descriptor & 0xFF), UInt8(descriptor >> 8), 3, 0]
        #expect(fixture.exchange(configuration) == [[0x13]])
        fixture.controller.forgetData()
        let handle = characteristic.valueHandle
        for number in 0..<UInt8(Outbox.limit) { await host.notify([number], of: handle) }
        let indicated = fixture.start { try await host.indicate([0xFF], of: handle, to: link) }
        let low = UInt8(handle.rawValue & 0xFF), high = UInt8(handle.rawValue >> 8)
        let notifications: [[UInt8]] = (0..<UInt8(Outbox.limit)).map { [0x1B, low, high, $0] }
        #expect(sentPDUs() == notifications + [[0x1D, low, high, 0xFF]])
        _ = fixture.exchange([0x1E])
        #expect(indicated.all.count == 1)
        // All of them have been sent, so that as many may be posted again.
        for _ in 0..<Outbox.limit { await host.notify([0], of: handle) }
    }

    @Test("What was posted to a link that ends is sent no more, and what is written later fails")
    func end() async throws {
        let (host, link) = (fixture.host, try connect())
        host.outbox.openGate(to: link, greatestLength: 20)
        for number in 0..<UInt8(12) { try await host.writeWithoutResponse([number], to: 0x0003, on: link) }
        let read = fixture.start { try await host.perform(ReadValue(handle: 0x0005), on: link) }
        for number in 0..<UInt8(12) { try await host.writeWithoutResponse([number], to: 0x0003, on: link) }
        fixture.controller.emit {
            DisconnectionComplete(connectionHandle: 0x0040, reason: .connectionTimeout).encodePacket(into: &$0)
        }
        fixture.loop.run(for: .milliseconds(1))
        #expect(fixture.controller.data.count == 4)
        let ended = HostError.disconnected(.controller(.connectionTimeout))
        #expect(throws: ended) { try read.all.first?.get() }
        let call = WriteCall(frame: { _, _ in }, link: link, awaitsProof: true, caller: .outbox)
        #expect(host.outbox.post(call, length: 1) == .refused)
        #expect(throws: ended) { try fixture.run { try await host.writeWithoutResponse([1], to: 0x0003, on: link) } }
    }

    @Test("A write that was waited for lets the next ones be posted, as long as what they carry fits")
    func opening() async throws {
        let (host, link) = (fixture.host, try connect())
        let call = WriteCall(frame: { _, _ in }, link: link, awaitsProof: true, caller: .outbox)
        try fixture.run { try await host.writeWithoutResponse([1], to: 0x0003, on: link) }
        #expect(host.outbox.post(call, length: 1) == .refused)
        let written = Recorder<Bool>()
        // From another thread.
        Task {
            try await host.writeWithoutResponse([2], to: 0x0003, on: link)
            written.append(true)
        }
        while written.all.isEmpty {
            fixture.loop.run(for: .milliseconds(1))
            await Task.yield()
        }
        #expect(host.outbox.post(call, length: 20) == .postedFirst)
        #expect(host.outbox.post(call, length: 21) == .refused)
    }
}
