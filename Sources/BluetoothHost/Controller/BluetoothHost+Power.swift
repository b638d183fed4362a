import BLEHCI
import BluetoothTypes

extension BluetoothHost {
    /// Opens the transport and brings the controller up.
    package func start() async throws(StartError) {
        guard power == .off else { throw .host(power == .closed ? .closed : .notReady) }
        let outcome = await CallContinuation.wait { continuation in
            perform(session.start(calls.begin(continuation)))
            endInput()
        }
        guard case .failure(let error) = outcome else { return }
        throw port.failure.map { .transport($0) } ?? .host(error)
    }

    /// Ends every link, scan and advertisement, resets the controller and closes the transport. A second call returns
    /// when the host is closed as well, or when its task is cancelled.
    package func close() async {
        guard power != .closed else { return await waitUntilClosed() }
        let mayAdvertise = gap.advertising.mayAdvertise
        let wasOn = session.close()
        submissions.properties.close()
        failPendingOperations(.closed)
        endInput()
        if wasOn {
            if mayAdvertise, !links.isEmpty { await stopAdvertising() }
            await disconnectAll()
            _ = try? await perform(Reset())
        }
        endAllLinks(.adapterClosed)
        endInput()
        perform(session.end())
        let cancelled = timers.cancelAll()
        withExtendedLifetime(cancelled) {}
        calls.setEnded()
        emit(.closed)
        deliver(.hostEnd)
        endInput()
        for call in calls.closes { end(call, .success(())) }
    }

    /// Whether a call of ``close()`` has ended everything.
    package var hasEnded: Bool { calls.hasEnded }

    private func waitUntilClosed() async {
        _ = try? await wait(for: .close) { host, call in
            if host.calls.hasEnded { host.end(call, .success(())) }
        }
    }

    /// Stops all advertising before the links end. Otherwise their peers could find the device again while it closes.
    private func stopAdvertising() async {
        if information?.usesExtendedCommands == true {
            _ = try? await perform(LESetExtendedAdvertisingEnable(enable: false))
        } else {
            _ = try? await perform(LESetAdvertisingEnable(advertisingEnable: false))
        }
    }

    /// Disconnects every link, so that the peers see a regular end. This takes one or two connection events; the host
    /// waits for at most a second.
    private func disconnectAll() async {
        for link in links.values { giveUp(link, .adapterClosed) }
        let deadline = loop.now + .seconds(1)
        for identifier in links.values.map(\.identifier) {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                guard let link = links[identifier] else { return continuation.resume() }
                var isResumed = false
                func resume() {
                    guard !isResumed else { return }
                    isResumed = true
                    continuation.resume()
                }
                link.observers.ends[observers.makeIdentifier()] = .host { _ in resume() }
                _ = schedule(.action(resume), at: deadline)
            }
        }
    }
}
