import BLE
import BLEL2CAP
import BluetoothHost
import Foundation
import Testing

@testable import CoreBluetooth

extension InputStream {
    /// Returns at most `count` available bytes; nil for a negative result of `read`.
    fileprivate func read(_ count: Int) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: count)
        let read = read(&buffer, maxLength: count)
        return read >= 0 ? Array(buffer.prefix(read)) : nil
    }
}

@Suite("The streams of an L2CAP channel")
struct ChannelStreamTests {
    @Test("Without a run loop, received data is read in pieces of any size until the end")
    func dataIsReadInPiecesWithoutARunLoop() {
        let channel = ScriptedChannel()
        let input = ChannelStreams(channel).input
        #expect(input.streamStatus == .notOpen)
        #expect(input.read(1) == nil)
        input.open()
        #expect(input.streamStatus == .open && !input.hasBytesAvailable)
        channel.deliver(.received([1, 2, 3]))
        channel.deliver(.received([4, 5]))
        #expect(input.hasBytesAvailable)
        #expect(input.read(2) == [1, 2])
        #expect(channel.consumed == 2)
        #expect(input.read(2) == [3, 4])
        channel.deliver(.closed(nil))
        #expect(input.streamStatus == .open)
        #expect(input.read(9) == [5])
        #expect(input.streamStatus == .atEnd && input.streamError == nil)
        #expect(input.read(9) == [])
        input.close()
        #expect(input.streamStatus == .closed)
        #expect(input.read(9) == nil)
    }

    @Test("A borrowed buffer holds the next bytes, and reading consumes them")
    func borrowedBufferHoldsTheNextBytes() throws {
        let channel = ScriptedChannel()
        let input = ChannelStreams(channel).input
        input.open()
        var pointer: UnsafeMutablePointer<UInt8>?
        var count = 0
        #expect(!input.getBuffer(&pointer, length: &count))
        channel.deliver(.received([1, 2, 3]))
        #expect(input.read(1) == [1])
        #expect(input.getBuffer(&pointer, length: &count))
        #expect(Array(UnsafeBufferPointer(start: pointer, count: count)) == [2, 3])
        #expect(!input.hasBytesAvailable && channel.consumed == 3)
    }

    @Test("Bytes without room are not accepted; there is space again when the channel has room")
    func bytesWithoutRoomAreNotAccepted() {
        let channel = ScriptedChannel(room: 3)
        let streams = ChannelStreams(channel)
        let output = streams.output
        #expect(output.write([1], maxLength: 1) == -1)
        output.open()
        #expect(output.hasSpaceAvailable)
        #expect(output.write([1, 2, 3, 4], maxLength: 4) == 3)
        #expect(!output.hasSpaceAvailable)
        channel.makeRoom(1)
        #expect(output.hasSpaceAvailable)
        #expect(output.write([4], maxLength: 1) == 1)
        #expect(channel.sent == [1, 2, 3, 4])
        channel.deliver(.closed(nil))
        #expect(!output.hasSpaceAvailable && output.streamStatus == .atEnd)
        #expect(output.write([5], maxLength: 1) == -1)
        withExtendedLifetime(streams) {}
    }

    @Test("A write that fills the space exactly leaves none")
    func writeThatFillsTheSpaceLeavesNone() {
        let channel = ScriptedChannel(room: 4)
        let streams = ChannelStreams(channel)
        let output = streams.output
        output.open()
        #expect(output.write([1, 2, 3, 4], maxLength: 4) == 4)
        #expect(!output.hasSpaceAvailable)
        channel.makeRoom(1)
        #expect(output.hasSpaceAvailable)
        withExtendedLifetime(streams) {}
    }

    @Test("Reading waits for data")
    func readingWaitsForData() async {
        let channel = ScriptedChannel()
        let streams = ChannelStreams(channel)
        streams.input.open()
        async let read = onThread { streams.input.read(10) }
        channel.deliver(.received([1]))
        #expect(await read == [1])
    }

    @Test("Writing waits for room")
    func writingWaitsForRoom() async {
        let channel = ScriptedChannel(room: 0)
        let streams = ChannelStreams(channel)
        streams.output.open()
        async let written = onThread { streams.output.write([7, 8], maxLength: 2) }
        // The writer has the lock of the streams until it waits, and room is reported under that lock.
        while channel.refusedCount == 0 { await Task.yield() }
        channel.makeRoom(5)
        #expect(await written == 2)
        #expect(channel.sent == [7, 8])
        #expect(channel.refusedCount == 1)
    }

    @Test("A lost link is an error after the data that was received before")
    func lostLinkIsAnErrorAfterTheReceivedData() throws {
        let channel = ScriptedChannel()
        let streams = ChannelStreams(channel)
        streams.input.open()
        streams.output.open()
        channel.deliver(.received([1]))
        channel.deliver(.closed(.core(.peripheralDisconnected)))
        #expect(streams.output.streamStatus == .error)
        #expect(streams.input.read(2) == [1])
        #expect(streams.input.streamStatus == .error && streams.input.read(2) == nil)
        for error in [streams.input.streamError, streams.output.streamError] {
            #expect((error as? CBError)?.code == .peripheralDisconnected)
        }
    }

    @Test("The channel is closed with both streams, or when neither is retained")
    func channelIsClosedWithBothStreamsOrTheirRelease() {
        let channel = ScriptedChannel()
        let streams = ChannelStreams(channel)
        streams.input.open()
        streams.input.close()
        #expect(!channel.isClosed)
        streams.output.close()
        #expect(channel.isClosed)
        let forgotten = ScriptedChannel()
        var input: InputStream? = ChannelStreams(forgotten).input
        withExtendedLifetime(input) {}
        #expect(!forgotten.isClosed)
        input = nil
        #expect(forgotten.isClosed)
    }

    @Test("On a run loop the delegate gets each change once, until it reads or writes")
    func delegateGetsEachChangeOnceOnARunLoop() async {
        let told = await onThread {
            let channel = ScriptedChannel(room: 2)
            let streams = ChannelStreams(channel)
            let listener = Listener()
            for stream in [streams.input, streams.output] as [Stream] {
                stream.delegate = listener
                stream.schedule(in: .current, forMode: .default)
                stream.open()
            }
            listener.wait(for: 3)
            channel.deliver(.received([1, 2]))
            channel.deliver(.received([3]))
            listener.wait(for: 4)
            _ = streams.input.read(1)
            listener.wait(for: 5)
            _ = streams.output.write([1, 2, 3], maxLength: 3)
            Thread.detachNewThread { channel.makeRoom(1) }
            listener.wait(for: 6)
            _ = streams.input.read(5)
            Thread.detachNewThread { channel.deliver(.closed(nil)) }
            listener.wait(for: 8)
            return listener.events
        }
        #expect(
            told.filter { $0.isInput }.map(\.event) == [
                .openCompleted, .hasBytesAvailable, .hasBytesAvailable, .endEncountered,
            ]
        )
        #expect(
            told.filter { !$0.isInput }.map(\.event) == [
                .openCompleted, .hasSpaceAvailable, .hasSpaceAvailable, .endEncountered,
            ]
        )
    }

    @Test("A stream removed from its run loop reports no events until it is scheduled on another one")
    func streamReportsOnlyOnItsRunLoop() async {
        let events = await onThread {
            let channel = ScriptedChannel()
            let input = ChannelStreams(channel).input
            let listener = Listener()
            input.delegate = listener
            input.schedule(in: .current, forMode: .default)
            input.open()
            listener.wait(for: 1)
            input.remove(from: .current, forMode: .default)
            channel.deliver(.received([1]))
            // A run loop without a source returns at once.
            _ = RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 0.01))
            let before = listener.events.count
            let mode = RunLoop.Mode("another")
            input.schedule(in: .current, forMode: mode)
            listener.wait(for: 2, mode: mode)
            return (before, listener.events.map(\.event))
        }
        #expect(events.0 == 1)
        #expect(events.1 == [.openCompleted, .hasBytesAvailable])
    }

    /// What a delegate does in its first call, while another event is pending.
    enum FirstCall: CaseIterable, Sendable {
        case closesTheStream
        case removesTheDelegate
        case setsAnotherDelegate
        case leavesTheRunLoop
    }

    @Test("A delegate that ends its calls in one of them gets no further event", arguments: FirstCall.allCases)
    func delegateThatEndsItsCallsGetsNoFurtherEvent(firstCall: FirstCall) async {
        let (first, second) = await onThread {
            let channel = ScriptedChannel()
            let streams = ChannelStreams(channel)
            let (listener, other) = (Listener(), Listener())
            listener.onFirstEvent = { stream in
                switch firstCall {
                case .closesTheStream: stream.close()
                case .removesTheDelegate: stream.delegate = nil
                case .setsAnotherDelegate: stream.delegate = other
                case .leavesTheRunLoop: stream.remove(from: .current, forMode: .default)
                }
            }
            streams.input.delegate = listener
            streams.input.open()
            channel.deliver(.received([1]))
            streams.input.schedule(in: .current, forMode: .default)
            listener.wait(for: 1)
            for _ in 1...3 { _ = RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 0.01)) }
            withExtendedLifetime(streams) {}
            return (listener.events.map(\.event), other.events.map(\.event))
        }
        #expect(first == [.openCompleted])
        #expect(second == (firstCall == .setsAnotherDelegate ? [.hasBytesAvailable] : []))
    }

    @Test("A quarter of a megabyte each way between hosts, with streams on run loops", .timeLimit(.minutes(10)))
    func streamsBetweenTwoHosts() async throws {
        let size = 1 << 18
        let (near, far) = try await HostPair.open("channel-streams")
        let streams = try await near.streams(to: far)
        let (there, back) = (octets(size, 1), octets(size, 2))
        let (nearStreams, farStreams) = (streams.near, streams.far)
        async let nearReceived = onThread { Exchange(nearStreams, sending: there, receiving: size).run() }
        async let farReceived = onThread { Exchange(farStreams, sending: back, receiving: size).run() }
        let results = await (nearReceived == back, farReceived == there)
        #expect(results == (true, true))
        await near.adapter.close()
        await far.adapter.close()
    }
}

private func octets(_ count: Int, _ salt: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8 ^ $0 >> 16 &+ salt) }
}

/// Runs `body` on a separate thread.
private func onThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread { continuation.resume(returning: body()) }
    }
}

/// Records its events, on the thread of its run loop.
private final class Listener: NSObject, StreamDelegate {
    private(set) var events: [(isInput: Bool, event: Stream.Event)] = []
    /// Called once, in the call for the first event.
    var onFirstEvent: ((Stream) -> Void)?

    func stream(_ aStream: Stream, handle eventCode: Stream.Event) {
        events.append((aStream is InputStream, eventCode))
        if let onFirstEvent {
            self.onFirstEvent = nil
            onFirstEvent(aStream)
        }
    }

    /// Runs the run loop until it has received `count` events in total.
    func wait(for count: Int, mode: RunLoop.Mode = .default) {
        let deadline = Date(timeIntervalSinceNow: 20)
        while events.count < count, RunLoop.current.run(mode: mode, before: deadline), Date() < deadline {}
    }
}

/// Sends and receives like an app, driven by the events of both streams.
private final class Exchange: NSObject, StreamDelegate {
    private let streams: ChannelStreams
    private var rest: ArraySlice<UInt8>
    private var received: [UInt8] = []
    private let expected: Int
    private var isOver = false

    init(_ streams: ChannelStreams, sending octets: [UInt8], receiving expected: Int) {
        self.streams = streams
        rest = octets[...]
        self.expected = expected
    }

    /// Returns the received bytes, once all bytes are sent and received.
    func run() -> [UInt8] {
        for stream in [streams.input, streams.output] as [Stream] {
            stream.delegate = self
            stream.schedule(in: .current, forMode: .default)
            stream.open()
        }
        let deadline = Date(timeIntervalSinceNow: 500)
        while !isOver, received.count < expected || !rest.isEmpty, Date() < deadline {
            _ = RunLoop.current.run(mode: .default, before: deadline)
        }
        return received
    }

    func stream(_ aStream: Stream, handle eventCode: Stream.Event) {
        switch eventCode {
        case .hasBytesAvailable:
            var buffer = [UInt8](repeating: 0, count: 3000)
            let count = streams.input.read(&buffer, maxLength: buffer.count)
            received += buffer.prefix(max(count, 0))
        case .hasSpaceAvailable:
            let count = rest.withUnsafeBufferPointer { buffer in
                buffer.baseAddress.map { streams.output.write($0, maxLength: min(5000, buffer.count)) } ?? 0
            }
            rest = rest.dropFirst(max(count, 0))
        case .endEncountered, .errorOccurred: isOver = true
        default: break
        }
    }
}

/// Two connected hosts in a virtual air of their own.
private struct HostPair {
    let adapter: Adapter
    let link: LinkIdentifier?

    static func open(_ name: String) async throws -> (near: HostPair, far: HostPair) {
        let near = try await Adapter.open(.virtual(name: name))
        let far = try await Adapter.open(.virtual(name: name))
        let advertising = try await far.peripheral.startAdvertising(
            AdvertisementConfiguration(interval: .milliseconds(20))
        )
        let peer = try await near.central.connect(to: try await far.information.identityAddress)
        await advertising.stop()
        return (HostPair(adapter: near, link: peer.link), HostPair(adapter: far, link: nil))
    }

    func streams(to far: HostPair) async throws -> (near: ChannelStreams, far: ChannelStreams) {
        let (farHost, nearHost) = (far.adapter.host, adapter.host)
        let accepted = Guarded<ChannelStreams?>(nil)
        let psm = try await farHost.publishChannels(.init()) { channel in
            let (streams, handler) = ChannelStreams.make(channel, of: farHost)
            accepted.withLock { $0 = streams }
            return handler
        }
        let link = try #require(link)
        let opened = try await withCheckedThrowingContinuation {
            (continuation: CheckedContinuation<ChannelStreams, any Error>) in
            nearHost.spawn { host in
                do {
                    _ = try host.beginOpeningChannel(to: psm, on: link) { result in
                        do {
                            let (streams, handler) = ChannelStreams.make(try result.get(), of: nearHost)
                            continuation.resume(returning: streams)
                            return handler
                        } catch {
                            continuation.resume(throwing: error)
                            return nil
                        }
                    }
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
        return (opened, try #require(accepted.withLock { $0 }))
    }
}
