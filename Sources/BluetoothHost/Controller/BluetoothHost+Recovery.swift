import BluetoothTypes
import ByteCoding
import HCI
import HCITransport
import L2CAP

extension BluetoothHost {
    /// Opens the transport and brings the controller up.
    package func start() async throws(HostError) {
        guard power == .off else { throw power == .closed ? .closed : .notReady }
        power = .starting
        do throws(HostError) {
            try await connectTransport()
            try await bringUpFirst()
        } catch {
            closeTransport()
            if power != .closed { power = .off }
            throw error
        }
        guard power == .starting else { throw .closed }
        becomePoweredOn()
    }

    /// Brings up a controller whose transport has just been opened. A controller that reports an error during this is reset
    /// again, at most twice. In a recovery, ``recover()`` tries again.
    private func bringUpFirst() async throws(HostError) {
        for _ in 0..<2 {
            do throws(HostError) {
                return try await bringUp()
            } catch .controllerFailed where power == .starting && transport != nil {
                continue
            }
        }
        try await bringUp()
    }

    /// Ends every link, scan and advertisement, resets the controller and closes the transport.
    package func close() async {
        guard power != .closed else { return }
        let wasOn = power == .on
        power = .closed
        publishedProperties.close()
        failPendingOperations(.closed)
        resumeRestWaiters()
        endInput()
        if wasOn {
            await disconnectAll()
            _ = try? await perform(Reset())
        }
        endAllLinks(.adapterClosed)
        endInput()
        abortCommands()
        endRecoveryPause()
        timers.cancelAll()
        closeTransport()
        setEnded()
        emit(.closed)
        deliver(.hostEnd)
        endInput()
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
                link.endObservers[makeIdentifier()] = .host { _ in resume() }
                _ = schedule(.action(resume), at: deadline)
            }
        }
    }

    /// Records that the controller failed, and starts to bring it up again. A bring-up in progress fails and is tried
    /// again.
    func controllerFailed(_ reason: String, isTransportLost: Bool) {
        switch power {
        case .on: break
        case .starting, .recovering: return bringUpFailed(reason, isTransportLost: isTransportLost)
        case .off, .closed: return
        }
        logger.warning("controller failed: \(reason); bringing it up again")
        metrics.recoveries.increment()
        power = .recovering
        bringUpPhase = .resetting
        generation += 1
        abortCommands()
        endAllLinks(.controllerReset(reason))
        forgetScan()
        advertiser.forgetController()
        forgetInitiation()
        privacy.forgetController()
        resumeRestWaiters()
        forgetStrayHandles()
        endedHandles.removeAll()
        if isTransportLost { closeTransport() }
        emit(HostEvent.resetting(reason: reason))
        if let lastPowerOn, loop.now - lastPowerOn > .seconds(30) { recoveryDelay = .milliseconds(100) }
        let hasJustComeUp = lastPowerOn.map { loop.now - $0 < .seconds(1) } ?? false
        spawn { host in
            // Prevents a busy loop if the controller fails immediately each time.
            if hasJustComeUp { await host.pauseRecovery() }
            await host.recover()
        }
    }

    /// Tries to bring the controller up until it succeeds. The pause doubles after each attempt, up to 30 seconds.
    private func recover() async {
        while power == .recovering {
            do throws(HostError) {
                if transport == nil { try await connectTransport() }
                try await bringUp()
                guard power == .recovering else { return }
                becomePoweredOn()
                return
            } catch {
                logger.warning("the controller is not up yet: \(error); trying again in \(recoveryDelay)")
                closeTransport()
                guard power == .recovering else { return }
                await pauseRecovery()
                recoveryDelay = min(recoveryDelay * 2, .seconds(30))
            }
        }
    }

    /// Waits until the next attempt, or until the host is closed.
    private func pauseRecovery() async {
        var timer: TimerQueue.Token?
        await withCheckedContinuation { continuation in
            guard power == .recovering else { return continuation.resume() }
            timer = schedule(.recoveryPause, after: recoveryDelay)
            recoveryPause = { continuation.resume() }
        }
        timers.cancel(timer)
    }

    func endRecoveryPause() {
        let pause = recoveryPause
        recoveryPause = nil
        pause?()
    }

    private func becomePoweredOn() {
        guard let information else { return }
        power = .on
        lastPowerOn = loop.now
        recoveryDelay = min(recoveryDelay * 2, .seconds(30))
        rotatePrivateAddressLater()
        emit(HostEvent.poweredOn(information))
        reconcileAdvertising()
        reconcileScan()
        reconcileConnections()
        endInput()
    }

    private func connectTransport() async throws(HostError) {
        generation += 1
        let generation = generation
        let transport: any Transport
        do throws(TransportError) {
            transport = try await openTransport()
        } catch {
            throw .transport(error)
        }
        guard power != .closed else {
            transport.close()
            throw .closed
        }
        self.transport = transport
        transportGeneration = generation
        commands = CommandQueue()
        let receive = LoopFunction<RawSpan> { $0.receive($1, generation: generation) }
        transport.start(
            onPacket: { [weak self] packet in
                if let self { receive(self, packet) }
            },
            onEnd: { [weak self] error in
                self?.assumeIsolated { $0.transportEnded(error, generation: generation) }
            }
        )
    }

    private func transportEnded(_ error: TransportError, generation: UInt64) {
        guard generation == transportGeneration, transport != nil else { return }
        transport = nil
        abortCommands()
        controllerFailed("the connection to it was lost: \(error)", isTransportLost: true)
        endInput()
    }

    func closeTransport() {
        transport?.close()
        transport = nil
        generation += 1
    }
}
