import BluetoothTypes

// Turns of activities that a controller cannot perform at the same time, and the passing of time.
extension ConnectionPlan {
    /// The peers whose turn it is: those at the front of the queue.
    func window(_ context: Context) -> Window {
        var window = Window()
        let size = max(1, min(context.acceptListSize, listCapacity ?? .max))
        for peer in queue.peers {
            let isUnresolved = context.unresolvedPeers.contains(peer)
            guard let address = isUnresolved ? foundPeers[peer]?.address : peer else { continue }
            guard window.addresses.count < size else {
                window.isPartial = true
                break
            }
            window.peers.insert(peer)
            window.addresses.insert(address)
        }
        return window
    }

    /// The initiation that the controller should run now, with the parameters of the oldest attempt for any of its
    /// peers; nil if it is not the turn of peers.
    func wantedInitiation(_ context: Context) -> Initiation? {
        guard !context.isHeld else { return nil }
        for attempt in attempts {
            guard let subevent = attempt.subevent, let train = context.trains[subevent.advertisement] else { continue }
            return Initiation(
                addresses: attempt.addresses,
                parameters: attempt.parameters,
                subevent: subevent,
                train: train
            )
        }
        guard !yieldsToScan else { return nil }
        let window = window(context)
        func isCurrent(_ attempt: ConnectionAttempt) -> Bool { !attempt.addresses.isDisjoint(with: window.peers) }
        guard let oldest = attempts.first(where: isCurrent) else { return nil }
        var initiation = Initiation(
            addresses: window.addresses,
            parameters: oldest.parameters,
            usesCodedPHY: context.canInitiateOnCodedPHY && attempts.contains { $0.usesCodedPHY && isCurrent($0) }
        )
        if codedRefusal.covers(initiation) { initiation.usesCodedPHY = false }
        return initiation
    }

    /// Limits the current turn while a peer or a scan waits for its turn.
    ///
    /// - Returns: whether the turn of scans has ended because no scan waits any more. Then the plan must run.
    @discardableResult
    mutating func updateTurns(_ context: Context, at now: Instant) -> Bool {
        let window = window(context)
        let isShared = !window.addresses.isEmpty && context.isScanKeptWaiting
        let hasEndedYielding = !isShared && yieldsToScan
        if hasEndedYielding { yieldsToScan = false }
        if !window.isPartial && !isShared {
            turnDeadline = nil
        } else if turnDeadline == nil {
            turnDeadline = now + ConnectionPlan.turnDuration
        }
        return hasEndedYielding
    }

    /// Ends the current turn and starts that of the peers or scans that wait.
    private mutating func endTurn(_ context: Context?, at now: Instant) {
        guard let context, !context.isHeld else { return }
        // If a peer was found during the turn of scans, the turn of peers began then.
        let wasTurnOfPeers = !yieldsToScan
        if wasTurnOfPeers { queue.endTurn(of: window(context).peers, at: now) }
        yieldsToScan = wasTurnOfPeers && context.isScanKeptWaiting
    }

    // MARK: Time

    private enum Due {
        case cancellation
        case foundPeer(DeviceAddress)
        case attempt(UInt64)
        case turn
    }

    /// The earliest of the plan's deadlines.
    var deadline: Instant? { earliestDue?.deadline }

    private var earliestDue: (deadline: Instant, due: Due)? {
        var earliest: (deadline: Instant, due: Due)?
        func consider(_ deadline: Instant?, _ due: @autoclosure () -> Due) {
            guard let deadline else { return }
            if let earliest, earliest.deadline <= deadline { return }
            earliest = (deadline, due())
        }
        consider(cancellationDeadline, .cancellation)
        for (peer, found) in foundPeers { consider(found.deadline, .foundPeer(peer)) }
        for attempt in attempts { consider(attempt.deadline, .attempt(attempt.identifier)) }
        consider(turnDeadline, .turn)
        return earliest
    }

    /// Handles the passing of time.
    ///
    /// - Parameter context: nil if the controller cannot be used now.
    mutating func advance(to now: Instant, _ context: Context?) -> [ConnectionEffect] {
        var effects: [ConnectionEffect] = []
        while let (deadline, due) = earliestDue, deadline <= now {
            switch due {
            case .cancellation: effects += cancellationTimedOut(at: now)
            case .foundPeer(let peer):
                foundPeers[peer] = nil
                effects += [.run, .runScan]
            case .attempt(let attempt): effects += endAttempt(attempt, .timedOut, at: now)
            case .turn:
                turnDeadline = nil
                endTurn(context, at: now)
                effects.append(.run)
            }
        }
        return effects
    }
}
