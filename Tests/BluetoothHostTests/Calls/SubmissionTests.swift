import BLEGATT
import BLEHCI
import BLEL2CAP
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The submission queue")
struct SubmissionQueueTests {
    private let link = LinkIdentifier(handle: 0x0040, serial: 1)

    /// Submits writes to the queue, and counts how often the loop was woken.
    private final class Submitter {
        let queue = SubmissionQueue()
        private(set) var wakeUps = 0

        func post(to link: LinkIdentifier, length: Int = 1) -> Bool {
            let value = [UInt8](repeating: 0, count: length)
            return queue.submit(WriteCall(value: value, handle: 0x0003, link: link, caller: .submission)) {
                wakeUps += 1
            }
        }

        func notify() -> Bool {
            queue.submit(NotifyCall(value: [], handle: 0x0003, clients: nil, caller: .submission)) { wakeUps += 1 }
        }
    }

    @Test("A write is accepted only while the link's fast path is open and the value fits")
    func closedFastPathRefusesWrites() {
        let submitter = Submitter()
        #expect(!submitter.post(to: link))
        submitter.queue.openFastPath(to: link, maximumLength: 20)
        #expect(!submitter.post(to: link, length: 21))
        #expect(submitter.post(to: link, length: 20))
        #expect(!submitter.post(to: LinkIdentifier(handle: 0x0040, serial: 2)))
        submitter.queue.closeFastPath(to: link)
        #expect(!submitter.post(to: link, length: 0))
        submitter.queue.openFastPath(to: link, maximumLength: 20)
        #expect(submitter.post(to: link))
        #expect(submitter.queue.inspect() == (2, 1))
        submitter.queue.removeFastPath(to: link)
        #expect(!submitter.post(to: link))
        #expect(submitter.queue.takeFirst().count == 2)
        #expect(submitter.queue.inspect() == (0, 0))
    }

    @Test("Submissions are limited for each link and for notifications; each one sent makes room")
    func submissionsAreLimitedAndEachSentOneMakesRoom() {
        let submitter = Submitter()
        let other = LinkIdentifier(handle: 0x0041, serial: 2)
        submitter.queue.openFastPath(to: link, maximumLength: 20)
        submitter.queue.openFastPath(to: other, maximumLength: 20)
        for _ in 0..<SubmissionQueue.limit { #expect(submitter.post(to: link)) }
        #expect(!submitter.post(to: link))
        submitter.queue.openFastPath(to: link, maximumLength: 30)
        #expect(!submitter.post(to: link))
        #expect(submitter.post(to: other))
        submitter.queue.writeSent(to: link)
        #expect(submitter.post(to: link, length: 30))
        #expect(!submitter.post(to: link))

        for _ in 0..<SubmissionQueue.limit { #expect(submitter.notify()) }
        #expect(!submitter.notify())
        submitter.queue.valueSent()
        #expect(submitter.notify())
        #expect(submitter.queue.takeFirst().count == 2 * SubmissionQueue.limit + 3)
    }

    @Test("The loop is woken again for submissions after it has taken all")
    func loopIsWokenAgainAfterTakingAll() {
        let submitter = Submitter()
        #expect(submitter.queue.takeFirst().isEmpty)
        #expect(submitter.notify() && submitter.notify())
        #expect(submitter.wakeUps == 1)
        #expect(submitter.queue.takeFirst().count == 2)
        #expect(submitter.notify())
        #expect(submitter.wakeUps == 2)
    }

    @Test("A call ends the batch; the loop is woken for each batch, and takes the oldest first")
    func callEndsTheBatch() {
        let submitter = Submitter()
        submitter.queue.endBatch()
        #expect(submitter.notify())
        submitter.queue.endBatch()
        submitter.queue.endBatch()
        #expect(submitter.notify() && submitter.notify())
        #expect(submitter.wakeUps == 2)
        submitter.queue.endBatch()
        #expect(submitter.queue.takeFirst().count == 1)
        #expect(submitter.notify())
        #expect(submitter.wakeUps == 3)
        #expect(submitter.queue.takeFirst().count == 2)
        #expect(submitter.queue.takeFirst().count == 1)
        #expect(submitter.queue.takeFirst().isEmpty)
    }
}

/// The tests run outside the loop, which does nothing during a test.
@Suite("A host with submissions")
struct SubmissionTests {
    private let fixture = HostFixture { $0.outboundFrameLimit = 2 }

    private func canSubmit(_ length: Int, to link: LinkIdentifier) -> Bool {
        let value = [UInt8](repeating: 0, count: length)
        let write = WriteCall(value: value, handle: 0x0003, link: link, caller: .submission)
        return fixture.host.submissions.submit(write) {}
    }

    private func connect() throws -> LinkIdentifier {
        try fixture.bringUp()
        fixture.connect()
        return try fixture.link()
    }

    /// The ATT PDUs that the host has sent, after the controller has returned all buffers.
    private func sentPDUs() -> [[UInt8]] {
        for _ in 0..<(SubmissionQueue.limit + 8) {
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

    @Test("Calls made after submitted writes are sent after them")
    func laterCallsFollowSubmittedWrites() async throws {
        let (host, link) = (fixture.host, try connect())
        host.submissions.openFastPath(to: link, maximumLength: 20)
        for number in 0..<UInt8(12) { try await host.writeWithoutResponse([number], to: 0x0003, on: link) }
        #expect(fixture.controller.data.isEmpty)
        let read = fixture.start { try await host.perform(ReadValue(handle: 0x0005), on: link) }
        // As many packets as the controller has buffers.
        #expect(fixture.controller.data.count == 4)
        let flushed = fixture.start { await host.flush(link) }
        #expect(flushed.all.isEmpty)
        let writes: [[UInt8]] = (0..<12).map { [0x52, 0x03, 0x00, $0] }
        #expect(sentPDUs() == writes + [[0x0A, 0x05, 0x00]])
        #expect(flushed.all.count == 1)
        _ = fixture.exchange([0x0B, 0x07])
        #expect(try read.all.first?.get() == [0x07])
        // All of them were sent, so the same number can be submitted again.
        for _ in 0..<SubmissionQueue.limit { try await host.writeWithoutResponse([0], to: 0x0003, on: link) }
        #expect(sentPDUs().filter { $0 == [0x52, 0x03, 0x00, 0] }.count == SubmissionQueue.limit)
    }

    @Test("A write that is submitted after a call is sent after it, although earlier writes are not sent yet")
    func submittedWriteFollowsEarlierCalls() async throws {
        let (host, link) = (fixture.host, try connect())
        host.submissions.openFastPath(to: link, maximumLength: 20)
        try await host.writeWithoutResponse([1], to: 0x0003, on: link)
        host.begin { $0.begin(ReadValue(handle: 0x0005), on: link) { _ in } }
        try await host.writeWithoutResponse([2], to: 0x0003, on: link)
        #expect(fixture.controller.data.isEmpty)
        #expect(sentPDUs() == [[0x52, 0x03, 0x00, 1], [0x0A, 0x05, 0x00], [0x52, 0x03, 0x00, 2]])
        #expect(host.submissions.inspect().submissions == 0)
    }

    @Test func submittedWriteFollowsAnEarlierSignedWrite() async throws {
        let (host, link) = (fixture.host, try connect())
        // On an encrypted link, the write needs no signature.
        try fixture.run { await host.setEncrypted(true) }
        host.submissions.openFastPath(to: link, maximumLength: 20)
        try await host.writeWithoutResponse([1], to: 0x0003, on: link)
        // Runs at once, until the call waits for the loop.
        let signed = Task.immediate { try await host.writeSigned([2], to: 0x0003, on: link) }
        try await host.writeWithoutResponse([3], to: 0x0003, on: link)
        #expect(fixture.controller.data.isEmpty)
        let writes: [[UInt8]] = (1...3).map { [0x52, 0x03, 0x00, $0] }
        #expect(sentPDUs() == writes)
        try await signed.value
    }

    @Test func requestForAChannelFollowsSubmittedWrites() async throws {
        let (host, link) = (fixture.host, try connect())
        host.submissions.openFastPath(to: link, maximumLength: 20)
        for number in 0..<UInt8(12) { try await host.writeWithoutResponse([number], to: 0x0003, on: link) }
        host.begin { _ = try? $0.beginOpeningChannel(to: SPSM(rawValue: 0x80), on: link) { _ in nil } }
        let sent = sentPDUs()
        #expect(Array(sent.prefix(12)) == (0..<12).map { [0x52, 0x03, 0x00, $0] })
        #expect(sent.count == 13 && sent.last?.first == 0x14)
    }

    @Test("An indication is sent after earlier submitted notifications")
    func indicationFollowsSubmittedNotifications() async throws {
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
        for number in 0..<UInt8(SubmissionQueue.limit) { try await host.notify([number], of: handle) }
        let indicated = fixture.start { try await host.indicate([0xFF], of: handle, to: link) }
        let low = UInt8(handle.rawValue & 0xFF)
        let high = UInt8(handle.rawValue >> 8)
        let notifications: [[UInt8]] = (0..<UInt8(SubmissionQueue.limit)).map { [0x1B, low, high, $0] }
        #expect(sentPDUs() == notifications + [[0x1D, low, high, 0xFF]])
        _ = fixture.exchange([0x1E])
        #expect(indicated.all.count == 1)
        // All of them were sent, so the same number can be submitted again.
        for _ in 0..<SubmissionQueue.limit { try await host.notify([0], of: handle) }
    }

    @Test("Submitted notifications leave the queue before a later call is answered")
    func notificationsLeaveTheQueueBeforeLaterCalls() async throws {
        let host = fixture.host
        _ = try connect()
        for number in 0..<UInt8(3) { try await host.notify([number], of: 0x0003) }
        #expect(host.submissions.inspect().submissions == 3)
        let left = fixture.start {
            _ = await host.value(of: 0x0003)
            return host.submissions.inspect().submissions
        }
        #expect(try left.all.first?.get() == 0)
    }

    @Test("Submitted writes to a link that ends are dropped, and later writes fail")
    func submittedWritesToAnEndedLinkAreDropped() async throws {
        let (host, link) = (fixture.host, try connect())
        host.submissions.openFastPath(to: link, maximumLength: 20)
        for number in 0..<UInt8(12) { try await host.writeWithoutResponse([number], to: 0x0003, on: link) }
        let read = fixture.start { try await host.perform(ReadValue(handle: 0x0005), on: link) }
        for number in 0..<UInt8(12) { try await host.writeWithoutResponse([number], to: 0x0003, on: link) }
        fixture.disconnected(reason: .connectionTimeout)
        #expect(fixture.controller.data.count == 4)
        let ended = HostError.disconnected(.controller(.connectionTimeout))
        #expect(throws: ended) { try read.all.first?.get() }
        #expect(!canSubmit(1, to: link))
        #expect(host.submissions.inspect() == (0, 0))
        #expect(throws: ended) { try fixture.run { try await host.writeWithoutResponse([1], to: 0x0003, on: link) } }
    }

    @Test("A write that waited for the loop lets later writes be submitted, if their values fit")
    func writeThatWaitedOpensTheFastPath() async throws {
        let (host, link) = (fixture.host, try connect())
        try fixture.run { try await host.writeWithoutResponse([1], to: 0x0003, on: link) }
        #expect(!canSubmit(1, to: link))
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
        #expect(canSubmit(20, to: link))
        #expect(!canSubmit(21, to: link))
    }

    @Test("A call behind submissions ends when it is cancelled, and later ones do not delay it")
    func cancelledCallBehindSubmissionsEnds() async throws {
        let (host, link) = (fixture.host, try connect())
        host.submissions.openFastPath(to: link, maximumLength: 20)
        for number in 0..<UInt8(12) { try await host.writeWithoutResponse([number], to: 0x0003, on: link) }
        let cancelled = Recorder<Bool>()
        let task = Task(executorPreference: fixture.loop.taskExecutor) {
            do throws(HostError) {
                _ = try await host.perform(ReadValue(handle: 0x0005), on: link)
            } catch {
                cancelled.append(error == .cancelled)
            }
        }
        fixture.loop.run(for: .milliseconds(1))
        task.cancel()
        fixture.loop.run(for: .milliseconds(1))
        #expect(cancelled.all == [true])
        let read = fixture.start { try await host.perform(ReadValue(handle: 0x0006), on: link) }
        for number in 12..<UInt8(24) { try await host.writeWithoutResponse([number], to: 0x0003, on: link) }
        let writes: [[UInt8]] = (0..<24).map { [0x52, 0x03, 0x00, $0] }
        #expect(sentPDUs() == Array(writes[..<12]) + [[0x0A, 0x06, 0x00]] + Array(writes[12...]))
        _ = fixture.exchange([0x0B, 0x07])
        #expect(try read.all.first?.get() == [0x07])
    }

    @Test("An app's answer is sent after earlier submitted notifications")
    func answerOfAnAppFollowsSubmittedNotifications() async throws {
        let (host, link) = (fixture.host, try connect())
        let requests = Recorder<UInt64>()
        let service = ServiceDefinition(
            uuid: "FFF0",
            characteristics: [
                CharacteristicDefinition(
                    uuid: "FFF1",
                    properties: [.read, .notify],
                    permissions: .read,
                    value: .handled
                )
            ]
        )
        let published = try fixture.run {
            try await host.publish([service]) { _, request in requests.append(request.identifier) }
        }
        let characteristic = try #require(published.first?.characteristics.first)
        let descriptor = try #require(characteristic.clientConfigurationHandle).rawValue
        #expect(fixture.exchange([0x12, UInt8(descriptor & 0xFF), UInt8(descriptor >> 8), 1, 0]) == [[0x13]])
        let handle = characteristic.valueHandle
        let low = UInt8(handle.rawValue & 0xFF)
        let high = UInt8(handle.rawValue >> 8)
        #expect(fixture.exchange([0x0A, low, high]).isEmpty)
        let request = try #require(requests.all.first)
        for number in 0..<UInt8(12) { try await host.notify([number], of: handle) }
        _ = fixture.start { await host.answer(request, on: link, with: .success([7])) }
        let notifications: [[UInt8]] = (0..<12).map { [0x1B, low, high, $0] }
        #expect(sentPDUs() == notifications + [[0x0B, 7]])
    }

    @Test func shorterMTUClosesTheFastPath() async throws {
        let (host, link) = (fixture.host, try connect())
        host.submissions.openFastPath(to: link, maximumLength: 244)
        #expect(fixture.exchange([0x02, 23, 0]).count == 1)
        #expect(!canSubmit(1, to: link))
    }
}
