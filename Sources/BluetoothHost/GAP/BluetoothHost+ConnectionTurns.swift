import BluetoothTypes

/// Turns of activities that a controller cannot perform at the same time.
///
/// Peers that do not all fit on the filter accept list take turns. Some controllers cannot scan while they initiate
/// connections (Vol 4, Part E, 7.8.27). With these, scans have a turn after each turn of connection attempts.
extension BluetoothHost {
    /// Whether scans have to wait while the controller initiates connections.
    private func scansMustWait(_ information: ControllerInformation) -> Bool {
        (!scan.scans.isEmpty || !soughtPeers.isEmpty)
            && !information.canScanWhileInitiating(actively: scan.wanted?.isActive ?? false)
    }

    /// Runs a timer while a peer or a scan waits for its turn.
    ///
    /// - Parameter window: the peers whose turn it is.
    func superviseConnectionTurns(_ window: Connector.Window, _ information: ControllerInformation) {
        let isShared = !window.addresses.isEmpty && scansMustWait(information)
        if !isShared, connector.yieldsToScan {
            connector.yieldsToScan = false
            reconcileConnections()
        }
        if !window.isPartial && !isShared {
            timers.cancel(connector.turnTimer)
            connector.turnTimer = nil
        } else if connector.turnTimer == nil {
            connector.turnTimer = schedule(.connectionTurn, after: Connector.turnDuration)
        }
    }

    /// Ends the current turn and starts that of the peers or scans that wait.
    func connectionTurnEnded() {
        connector.turnTimer = nil
        if power == .on, privacy.hold == .nothing, let information {
            // If a peer was found during the turn of scans, the turn of peers began then: see met(_:at:).
            let wasTurnOfPeers = !connector.yieldsToScan
            if wasTurnOfPeers { connector.endTurn(of: connectorWindow(information), at: loop.now) }
            connector.yieldsToScan = wasTurnOfPeers && scansMustWait(information)
        }
        reconcileConnections()
    }

    // MARK: Scanning

    /// Starts or stops scanning as initiating requires.
    ///
    /// - Returns: whether initiating can begin now. Otherwise it begins when scanning has stopped.
    func isReadyToInitiate(_ wanted: Connector.Initiation?, _ information: ControllerInformation) -> Bool {
        let isScanning = !scan.isResting
        let isActive = scan.mayScanActively
        reconcileScan()
        if wanted != nil, isScanning, connector.scanWait != .over,
            !information.canScanWhileInitiating(actively: isActive)
        {
            connector.scanWait = .waiting
            return false
        }
        connector.scanWait = .none
        return true
    }

    /// Handles the end of a scan pass: the controller scans as requested, so initiating may begin.
    func scanPassEnded() {
        guard connector.scanWait == .waiting else { return }
        connector.scanWait = .over
        reconcileConnections()
    }
}
