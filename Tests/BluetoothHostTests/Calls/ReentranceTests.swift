import BLEATT
import BLEGATT
import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// Closures of apps that call the host while it calls them.
@Suite("Calls from within an app's closures")
struct ReentranceTests {
    private let command: [UInt8] = [0x52, 3, 0, 9]

    private func read(_ handle: UInt8) -> [UInt8] { [0x0A, handle, 0] }

    private func bytes(_ value: [UInt8], of handle: AttributeHandle) -> [UInt8] { [0x1B] + handle.bytes + value }

    @Test func callsFromACompletionFollowTheCallsBeforeThem() throws {
        let calls = try CallFixture(buffers: 40)
        let (host, link) = (calls.host, calls.link)
        let handle = try calls.publishSubscribed()
        let ended = Recorder<String>()
        try calls.fixture.run {
            await host.beginReading(5, on: link) { host in
                ended.append("first")
                host.beginWriteWithoutResponse([9], to: 3, on: link) { _ in ended.append("write") }
                host.beginReading(7, on: link) { _ in ended.append("third") }
                host.beginSending([1], of: handle, to: [link]) { _ in ended.append("notification") }
            }
            await host.beginReading(6, on: link) { _ in ended.append("second") }
        }
        #expect(calls.takeSent() == [read(5)])
        calls.receive([0x0B, 1])
        #expect(calls.takeSent() == [bytes([1], of: handle), read(6), command])
        #expect(ended.all == ["first", "notification", "write"])
        calls.receive([0x0B, 1])
        #expect(calls.takeSent() == [read(7)])
        calls.receive([0x0B, 1])
        #expect(ended.all == ["first", "notification", "write", "second", "third"])
        #expect(calls.drain() == [])
    }

    @Test func callsFromTheLastCompletionLeaveInTheirOrder() throws {
        let calls = try CallFixture(buffers: 40)
        let (host, link) = (calls.host, calls.link)
        let handle = try calls.publishSubscribed()
        try calls.fixture.run {
            await host.beginReading(5, on: link) { host in
                host.beginWriteWithoutResponse([9], to: 3, on: link) { _ in }
                host.beginSending([1], of: handle, to: [link]) { _ in }
                host.beginReading(7, on: link) { host in
                    host.beginReading(8, on: link) { _ in }
                    host.beginWriteWithoutResponse([9], to: 3, on: link) { _ in }
                }
            }
        }
        calls.receive([0x0B, 1])
        #expect(calls.takeSent() == [read(5), command, bytes([1], of: handle), read(7)])
        calls.receive([0x0B, 1])
        #expect(calls.takeSent() == [read(8), command])
        calls.receive([0x0B, 1])
        #expect(calls.drain() == [])
    }

    @Test func callsFromACancelledCompletionLeaveInTheirOrder() throws {
        let calls = try CallFixture(buffers: 40)
        let (host, link) = (calls.host, calls.link)
        let ended = Recorder<String>()
        let run = TypedProcedureRun(ReadValue(handle: 6))
        nonisolated(unsafe) let cancelled: ProcedureRun = run
        try calls.fixture.run {
            await host.beginReading(5, on: link) { _ in ended.append("first") }
            await host.isolated { host in
                host.submit(
                    ProcedureCall(
                        run: cancelled,
                        link: link,
                        caller: .callback { _ in
                            ended.append("cancelled")
                            host.assumeIsolated { $0.beginReading(7, on: link) { _ in ended.append("last") } }
                        }
                    )
                )
                host.cancel(cancelled, on: link)
            }
        }
        #expect(ended.all == ["cancelled"])
        calls.receive([0x0B, 1])
        calls.receive([0x0B, 1])
        #expect(calls.takeSent() == [read(5), read(7)])
        #expect(ended.all == ["cancelled", "first", "last"])
    }

    @Test func valuesSentByAnObserverPrecedeTheResponse() throws {
        let calls = try CallFixture(buffers: 40)
        let (host, link) = (calls.host, calls.link)
        let handle = try calls.publishSubscribed(0)
        let changes = Recorder<ClientConfiguration>()
        try calls.fixture.run {
            _ = await host.observeServer { event in
                guard case .access(_, .configured(_, _, let configuration)) = event else { return }
                changes.append(configuration)
                host.assumeIsolated { $0.beginSending([1], of: handle, to: [link]) { _ in } }
            }
        }
        calls.receive([0x12] + AttributeHandle(handle.rawValue + 1).bytes + [1, 0])
        #expect(calls.takeSent() == [bytes([1], of: handle), [0x13]])
        #expect(changes.all == [.notification])
    }

    @Test func answerFromTheHandlerOfAnAccessIsSentAtOnce() throws {
        let calls = try CallFixture(buffers: 40)
        let host = calls.host
        let service = ServiceDefinition(
            uuid: "FFF0",
            characteristics: [
                CharacteristicDefinition(uuid: "FFF1", properties: .read, permissions: .read, value: .handled)
            ]
        )
        let published = try calls.fixture.run {
            try await host.publish([service]) { link, request in
                host.assumeIsolated { host in
                    host.beginReading(5, on: link) { _ in }
                    host.answer(request.identifier, on: link, with: .success([7]))
                }
            }
        }
        let handle = try #require(published.first?.characteristics.first?.valueHandle)
        calls.receive([0x0A] + handle.bytes)
        #expect(calls.takeSent() == [read(5), [0x0B, 7]])
    }

    @Test func callsFromAValuePrecedeItsConfirmation() throws {
        let calls = try CallFixture(buffers: 40)
        let (host, link) = (calls.host, calls.link)
        _ = try calls.fixture.run {
            try await host.addSubscriber(of: 3, on: link) { value in
                host.assumeIsolated { $0.beginReading(UInt16(value.value[0]), on: link) { _ in } }
            }
        }
        calls.receive([0x1D, 3, 0, 5])
        #expect(calls.takeSent() == [read(5), [0x1E]])
    }
}

extension BluetoothHost {
    fileprivate func isolated<Value: Sendable>(_ body: @Sendable (isolated BluetoothHost) -> Value) -> Value {
        body(self)
    }

    fileprivate func beginReading(
        _ handle: UInt16,
        on link: LinkIdentifier,
        completion: @escaping @Sendable (isolated BluetoothHost) -> Void
    ) {
        begin(ReadValue(handle: AttributeHandle(rawValue: handle)), on: link) { [self] _ in
            assumeIsolated { completion($0) }
        }
    }
}
