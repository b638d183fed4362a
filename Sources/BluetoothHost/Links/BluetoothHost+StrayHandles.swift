import BluetoothTypes
import HCI

/// Packets whose connection handle belongs to no link of the host.
///
/// # Causes
/// - The link has just ended, and its last packets were still on their way to the host.
/// - The Connection Complete event is late. This happens over USB, where events and data use different pipes.
/// - The Connection Complete event was lost. The controller then has a link that the host does not know.
/// - The packet is not about a link. Controllers of one family send their log as ACL data with the handle 0x0EDC. Handles
///   above 0x0EFF are reserved (Vol 4, Part E, 5.3.1).
///
/// # Response
/// Each stray packet is counted. None of them resets the controller, because a reset ends every other link. If data
/// arrived for a handle that can be a link's and is still unknown a second later, the host sends Disconnect for that
/// handle. The controller's answer distinguishes the cases. A controller without such a link answers Unknown Connection
/// Identifier (0x02). The host then ignores the handle until the next reset or the next link with it. A controller that
/// has the link ends it, so that the peer can connect again.
///
/// When an unknown link ends, its Connection Complete event was lost as well. That link may have ended advertising or a
/// connection attempt in the controller without the host's knowledge. The host starts both again.
///
/// The controller is reset only if it confirmed that it has such a link and then does not end it.
extension BluetoothHost {
    /// The time that a Connection Complete event may be late, and the shortest time between two restarts of the roles.
    private static let strayDelay = Duration.seconds(1)
    /// The longest supervision timeout, with a margin.
    private static let strayEndTimeout = Duration.seconds(34)

    private func hasJustEnded(_ handle: ConnectionHandle) -> Bool {
        endedHandles[handle].map { loop.now - $0 < .seconds(2) } ?? false
    }

    /// Counts data for an unknown link, and finds out once whether the controller has the link.
    func receivedStray(_ handle: ConnectionHandle) {
        metrics.strayPackets.increment()
        guard power == .on, handle.isValid, strayHandles[handle] == nil, !strayHandles.isFull, !hasJustEnded(handle)
        else { return }
        strayHandles[handle] = .observed(schedule(.strayHandle(handle), after: BluetoothHost.strayDelay))
    }

    func strayHandleTimedOut(_ handle: ConnectionHandle) {
        guard case .observed? = strayHandles[handle] else { return }
        strayHandles[handle] = nil
        guard links[handle] == nil, !hasJustEnded(handle) else { return }
        endUnknownLink(handle)
    }

    private func endUnknownLink(_ handle: ConnectionHandle) {
        strayHandles[handle] = .ending
        let generation = generation
        send(Disconnect(connectionHandle: handle, reason: .remoteUserTerminatedConnection)) { [weak self] result in
            self?.assumeIsolated { host in
                // The link's end may have arrived before, or a new link may have the handle by now.
                guard host.generation == generation, case .ending? = host.strayHandles[handle] else { return }
                switch result {
                case .success: host.unknownLinkIsEnding(handle)
                case .failure: host.strayHandles[handle] = .unlinked
                }
            }
        }
    }

    private func unknownLinkIsEnding(_ handle: ConnectionHandle) {
        logger.warning("the controller has a link \(handle) that it did not report; ending it")
        let timeout = BluetoothHost.strayEndTimeout + configuration.commandTimeout
        strayHandles[handle] = .endConfirmed(schedule(.strayLinkEnd(handle), after: timeout))
    }

    func strayLinkEndTimedOut(_ handle: ConnectionHandle) {
        guard case .endConfirmed? = strayHandles[handle] else { return }
        strayHandles[handle] = nil
        controllerFailed("it did not end the link \(handle)", isTransportLost: false)
    }

    /// Counts the end of an unknown link, and starts again what that link may have stopped.
    func endedUnknown(_ handle: ConnectionHandle) {
        metrics.strayPackets.increment()
        guard power == .on, handle.isValid, !hasJustEnded(handle) else { return }
        logger.debug("the controller ended a link \(handle) that it did not report")
        forgetStray(handle)
        endedHandles[handle] = loop.now
        restartRolesLater()
    }

    /// Starts connectable advertising and initiating again: a lost Connection Complete event may have ended them.
    ///
    /// Waits a second, so that several events cause one restart.
    private func restartRolesLater() {
        guard roleRestartTimer == nil else { return }
        roleRestartTimer = schedule(.roleRestart, after: BluetoothHost.strayDelay)
    }

    func restartRoles() {
        roleRestartTimer = nil
        refreshAdvertising()
        restartInitiating()
    }

    /// Forgets a stray handle, because a link has it now or its link has ended.
    func forgetStray(_ handle: ConnectionHandle) {
        guard let state = strayHandles[handle] else { return }
        timers.cancel(state.timer)
        strayHandles[handle] = nil
    }

    func forgetStrayHandles() {
        for timer in strayHandles.timers { timers.cancel(timer) }
        strayHandles.removeAll()
        timers.cancel(roleRestartTimer)
        roleRestartTimer = nil
    }
}

extension ConnectionHandle {
    /// Whether a link can have this handle: 0x0F00 to 0x0FFF are reserved (Vol 4, Part E, 5.3.1).
    fileprivate var isValid: Bool { rawValue <= 0x0EFF }
}
