import BLEL2CAP
import BluetoothHost
import Synchronization

extension RemotePeripheral {
    /// Opens an L2CAP channel to a service of the peer.
    ///
    /// - Parameters:
    ///   - psm: the service's SPSM, 0x0001 to 0x00FF. The peer announces those from 0x0080 on, in a characteristic for
    ///   example.
    ///   - configuration: the lengths that this side receives: an MPS of at most 4,096 bytes.
    /// - Throws: ``BLEError/channel(_:)`` with the reason if the peer refuses, ``BLEError/timedOut(_:)`` if it does not
    ///   answer, ``BLEError/cancelled`` if the task is cancelled.
    public func openChannel(
        psm: UInt16,
        configuration: L2CAPChannel.Configuration = .init()
    ) async throws(BLEError) -> L2CAPChannel {
        let link = try usableLink
        let results = await openChannels { host, completion throws(HostError) in
            [
                try host.beginOpeningChannel(
                    to: SPSM(rawValue: psm),
                    on: link,
                    configuration: configuration,
                    completion: completion
                )
            ]
        }
        guard let result = results.first else { throw .cancelled }
        return try result.get()
    }

    /// Opens up to five channels to a service of the peer in one request, with enhanced credit-based flow control.
    ///
    /// - Parameters:
    ///   - count: 1 to 5.
    ///   - psm: the service's SPSM, 0x0001 to 0x00FF.
    ///   - configuration: as with ``openChannel(psm:configuration:)``; lengths below 64 bytes are raised to 64.
    /// - Returns: the result for each channel: the peer may allow some channels and refuse others.
    public func openChannels(
        _ count: Int,
        psm: UInt16,
        configuration: L2CAPChannel.Configuration = .init()
    ) async -> [Result<L2CAPChannel, BLEError>] {
        let link: LinkIdentifier
        do throws(BLEError) {
            link = try usableLink
        } catch {
            return [.failure(error)]
        }
        return await openChannels { host, completion throws(HostError) in
            try host.beginOpeningChannels(
                count,
                to: SPSM(rawValue: psm),
                on: link,
                configuration: configuration,
                completion: completion
            )
        }
    }

    private func openChannels(
        _ begin:
            @escaping @Sendable (isolated BluetoothHost, @escaping ChannelCompletion) throws(HostError) ->
            [HostChannelIdentifier]
    ) async -> [Result<L2CAPChannel, BLEError>] {
        let opening = ChannelOpening(host: host)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // In the order of the caller's writes and procedures.
                host.begin { host in
                    do throws(HostError) {
                        let names = try begin(host) { opening.take($0) }
                        opening.begun(names, continuation, on: host)
                    } catch {
                        continuation.resume(returning: [.failure(BLEError(error, doing: "opening a channel"))])
                    }
                }
            }
        } onCancel: {
            host.spawn { opening.cancel(on: $0) }
        }
    }
}

/// A pending request for channels.
private final class ChannelOpening: Sendable {
    private struct State {
        var names: [HostChannelIdentifier] = []
        var isCancelled = false
        var results: [Result<L2CAPChannel, BLEError>] = []
        var continuation: CheckedContinuation<[Result<L2CAPChannel, BLEError>], Never>?
    }

    private let host: BluetoothHost
    private let state = Mutex(State())

    init(host: BluetoothHost) {
        self.host = host
    }

    /// Handles the result for one channel.
    func take(_ result: Result<OpenedChannel, HostError>) -> ChannelHandler? {
        let signals = ChannelSignals()
        let channel = result.map { L2CAPChannel(host: host, opened: $0, signals: signals) }
            .mapError { BLEError($0, doing: "opening a channel") }
        state.withLock { $0.results.append(channel) }
        finishIfComplete()
        return { signals.take($0) }
    }

    /// Called when the request has been sent for these channels.
    func begun(
        _ names: [HostChannelIdentifier],
        _ continuation: CheckedContinuation<[Result<L2CAPChannel, BLEError>], Never>,
        on host: isolated BluetoothHost
    ) {
        let isCancelled = state.withLock { state in
            state.names = names
            state.continuation = continuation
            return state.isCancelled
        }
        finishIfComplete()
        if isCancelled { cancel(on: host) }
    }

    private func finishIfComplete() {
        let finished = state.withLock { state -> (() -> Void)? in
            guard let continuation = state.continuation, state.results.count == state.names.count else { return nil }
            state.continuation = nil
            let results = state.results
            state.results = []
            return { continuation.resume(returning: results) }
        }
        finished?()
    }

    func cancel(on host: isolated BluetoothHost) {
        let names = state.withLock { state in
            state.isCancelled = true
            return state.continuation == nil ? [] : state.names
        }
        for name in names { host.closeChannel(name) }
    }
}
