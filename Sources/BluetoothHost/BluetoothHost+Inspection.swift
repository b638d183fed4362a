import BLEL2CAP

/// A snapshot of the resources that a host holds, for tests that look for leaks and inconsistent state.
package struct HostInspection: Hashable, Sendable {
    package var isOn = false
    package var links = 0
    package var timers = 0
    /// Timers in the heap, with those that were cancelled and are not due yet.
    package var timersInHeap = 0
    /// Whether the loop's alarm is set.
    package var isAlarmSet = false
    /// Commands that are not sent yet or have no answer yet.
    package var commands = 0
    package var scans = 0
    package var advertisements = 0
    /// Advertisements that have ended, but that the controller has refused to turn off or to remove.
    package var unremovedAdvertisingSets = 0
    /// Trains of advertisements with subevents.
    package var subeventTrains = 0
    package var subeventObservers = 0
    package var synchronizations = 0
    package var connectionAttempts = 0
    /// Peers that share the filter accept list in turns, and links that must end before a connection attempt starts.
    package var awaitedPeers = 0
    /// Handles without a link that are observed or ignored.
    package var strayHandles = 0
    /// Tasks of the host that have started and not ended; nil in release builds, which do not count them.
    package var tasks: Int?
    /// Suspended calls, whatever they wait for.
    package var calls = 0
    /// Suspended calls of ``BluetoothHost/sleep(for:)``.
    package var sleeps = 0
    package var commandCallers = 0
    package var connectionCallers = 0
    package var scanObservers = 0
    package var synchronizationObservers = 0
    /// Receptions of transferred synchronizations.
    package var receptions = 0
    package var receptionObservers = 0
    package var hostObservers = 0
    package var serverObservers = 0
    /// Observers of the ends of links.
    package var endObservers = 0
    /// Subscribers of values that peers send.
    package var subscribers = 0
    package var isTransportOpen = false
    /// Closures of apps that answer for published attributes and channels.
    package var serverClosures = 0
    /// Links in the index of configured characteristics, once for each characteristic.
    package var indexedLinks = 0
    /// Sessions of Channel Sounding.
    package var soundings = 0
    /// Isochronous streams, and broadcast groups.
    package var streams = 0
    package var broadcastGroups = 0
    /// Observers of streams, of requests for streams, and callers that open streams.
    package var streamObservers = 0
    /// Values to several clients for which callers wait.
    package var updates = 0
    /// Changes of bonds whose save is awaited.
    package var pendingSaves = 0
    /// Outbound queues that are open.
    package var outboundQueues = 0
    /// ACL packets that the controller holds for existing links.
    package var packetsInController = 0
    /// Frames that wait for a free buffer of the controller.
    package var frames = 0
    /// Requests and indications that wait for the peer.
    package var transactions = 0
    /// Signed writes of clients that wait until their counters are stored, and the PDUs queued behind them.
    package var heldPDUs = 0
    /// Calls that wait for an operation on a link.
    package var waiters = 0
    /// Submitted writes and notifications that are not sent yet, and links that have a fast path for them.
    package var submissions = 0
    package var fastPaths = 0
    /// Closures of apps that are still to be called.
    package var deliveries = 0
    /// Pairings in progress.
    package var pairings = 0
    /// Questions about pairings that wait for their answers.
    package var questions = 0
    package var securityObservers = 0
    /// L2CAP channels, including those that are being opened or closed.
    package var channels = 0
    package var channelObservers = 0

    /// Whether nothing is held that a closed host must have released. Tasks may be ending.
    package var isEmpty: Bool {
        var inspection = self
        inspection.tasks = nil
        return inspection == HostInspection()
    }
}

extension BluetoothHost {
    package func inspect() -> HostInspection {
        var inspection = HostInspection()
        inspection.isOn = power == .on
        inspection.links = links.count
        (inspection.timers, inspection.timersInHeap) = (timers.count, timers.heapCount)
        inspection.isAlarmSet = timers.isAlarmSet
        inspection.commands = session.commands.count
        inspection.scans = gap.scanning.scans.sessions.count
        inspection.advertisements = gap.advertising.count
        inspection.unremovedAdvertisingSets = gap.advertising.leftOnCount
        inspection.subeventTrains = gap.subevents.advertisements.count
        inspection.subeventObservers = observers.subevents.count
        inspection.synchronizations = gap.synchronizing.entries.count
        #if DEBUG
            inspection.tasks = turn.taskCount
        #endif
        inspection.calls = calls.count
        inspection.sleeps = calls.sleeps.count
        inspection.connectionAttempts = gap.connecting.attempts.count
        inspection.awaitedPeers = gap.connecting.queue.peers.count + gap.connecting.linksToAwait.count
        inspection.strayHandles = session.strays.count
        inspection.commandCallers = observers.commands.count
        inspection.connectionCallers = observers.connections.count
        inspection.scanObservers = observers.scans.count
        inspection.synchronizationObservers = observers.synchronizations.count
        inspection.receptions = gap.synchronizing.reception.receivers.count
        inspection.receptionObservers = observers.receptions.count
        inspection.soundings = observers.soundings.count
        inspection.streams = isochronous.streams.count + isochronous.broadcasts.streams.count
        inspection.broadcastGroups = isochronous.broadcasts.groups.count
        inspection.streamObservers =
            observers.streams.count + observers.streamRequests.count + observers.streamOpenings.count
            + observers.broadcastSynchronizations.count
        inspection.serverClosures = services.closureCount
        inspection.indexedLinks = services.indexedLinkCount
        inspection.updates = updates.count
        inspection.pendingSaves = bonds.pendingSaveCount
        inspection.outboundQueues = sender.openCount
        inspection.hostObservers = observers.host.count + observers.reopenings.count
        inspection.securityObservers = observers.security.count
        inspection.serverObservers = observers.server.count
        inspection.channelObservers = observers.channels.count
        inspection.isTransportOpen = port.isOpen
        inspection.deliveries = turn.deliveries.count
        (inspection.submissions, inspection.fastPaths) = submissions.inspect()
        for link in links.values {
            inspection.packetsInController += sender.packetsInController(link.slot)
            inspection.frames += sender.frameCount(link.slot)
            inspection.transactions +=
                (link.att.bearer.awaitedRequest == nil ? 0 : 1) + (link.att.indicationInFlight == nil ? 0 : 1)
            inspection.heldPDUs += link.att.signedWrites.count
            inspection.endObservers += link.observers.ends.count
            inspection.subscribers += link.att.subscribers.count
            inspection.channels += link.channels.count
            inspection.calls += link.att.suspendedProcedureCount
            for bearer in link.att.enhanced?.bearers ?? [] {
                inspection.transactions += bearer.transactions.awaitedRequest == nil ? 0 : 1
                inspection.calls += bearer.calls.count { if case .task = $0.caller { true } else { false } }
            }
            inspection.waiters += link.att.lanes.count + link.att.drains.count
            inspection.pairings += link.security.securityManager.isPairing ? 1 : 0
            inspection.questions += link.security.state.question == nil ? 0 : 1
            inspection.waiters += link.security.state.waiting.count
            for procedure in LinkProcedure.allCases {
                inspection.waiters += link.control.procedures[procedure].count
            }
        }
        return inspection
    }

    /// The number of inputs that have ended, for tests that look at a host only if something has happened to it; nil in
    /// release builds, which do not count them.
    package var inputCount: Int? {
        #if DEBUG
            turn.inputCount
        #else
            nil
        #endif
    }

    /// Describes an inconsistency in the host's state; nil if there is none. May be called between any two packets.
    package func contradiction() -> String? {
        var held = 0
        var observedChannels = 0
        var timersAccountedFor = 8
        timersAccountedFor += calls.timerCount + (updates.hasTimer ? 1 : 0)
        for link in links.values {
            held += sender.packetsInController(link.slot)
            timersAccountedFor += 2
            if let contradiction = disagreementAboutSecurity(of: link) { return "\(link.peer): \(contradiction)" }
            if let deadline = link.deadline, link.timer.map({ $0.due > deadline }) ?? true {
                return "a link's deadline has no timer"
            }
            observedChannels += link.channels.observedCount
            if link.att.hasSendableCall(conditions(on: link)) { return "a call waits that can be sent" }
            if turn.phase == .idle, link.att.signedWrites.isStuck { return "a PDU waits behind no signed write" }
            if power == .on, let contradiction = contradictionInProcedures(of: link) { return contradiction }
            if link.att.drains.contains(where: { calls.isWaiting($0.call) }), sender.isDrained(link.slot),
                link.att.lanes.isEmpty
            {
                return "a call waits for packets that have been sent"
            }
        }
        if power == .on {
            if sender.credits + held != sender.packetCount {
                return "\(sender.credits) ACL credits and \(held) packets in a controller of \(sender.packetCount)"
            }
        }
        if turn.phase == .idle, session.commands.hasSendableCommand { return "a command waits for nothing" }
        if let deadline = session.deadline, timers.due(of: .session).map({ $0 > deadline }) ?? true {
            return "the session's deadline has no timer"
        }
        let isOn = power == .on
        if power != .closed, let deadline = gap.deadline(isOn: isOn),
            timers.due(of: .gap).map({ $0 > deadline }) ?? true
        {
            return "a deadline of GAP has no timer"
        }
        if gap.hasEffects { return "an effect of GAP was not performed" }
        if session.commands.callerCount != observers.commands.count { return "a caller waits for no command" }
        if bonds.records.count > bonds.limit { return "\(bonds.records.count) bonds, at most \(bonds.limit)" }
        if gap.scanning.scans.sessions.keys != observers.scans.keys { return "the scans and their observers differ" }
        let synchronizations = observers.broadcastSynchronizations.union(observers.synchronizations.keys)
        if Set(gap.synchronizing.entries.map(\.identifier)) != synchronizations {
            return "the synchronizations and their observers differ"
        }
        if !Set(observers.subevents.keys).isSubset(of: gap.subevents.advertisements) {
            return "subevents of an advertisement that has ended are observed"
        }
        if Set(gap.synchronizing.reception.receivers.map(\.identifier)) != Set(observers.receptions.keys) {
            return "the receptions of transferred synchronizations and their observers differ"
        }
        if turn.phase == .idle,
            let session = observers.soundings.keys.first(where: { session in
                !links.values.contains { $0.sounding.includes(session) }
            })
        {
            return "session \(session) of channel sounding has no link"
        }
        if Set(gap.connecting.attempts.map(\.identifier)) != Set(observers.connections.keys) {
            return "the attempts to connect and their callers differ"
        }
        if turn.phase == .idle, observers.channels.count != observedChannels {
            return "\(observers.channels.count) observers of \(observedChannels) channels"
        }
        if power == .on, gap.canContinueWithAddresses { return "a change of addresses waits for nothing" }
        if turn.phase == .idle, !turn.deliveries.isEmpty { return "the closure of an app waits for no turn" }
        if links.occupiedSlotCount != links.count { return "the links and their handles differ" }
        if sender.openCount != links.count { return "\(sender.openCount) outbound queues of \(links.count) links" }
        if submissions.hasFastPath(where: { links[$0] == nil }) { return "a fast path to a link that has ended" }
        if turn.phase == .idle, let contradiction = callWithoutSubject() { return contradiction }
        if timers.count > timersAccountedFor { return "\(timers.count) timers, \(timersAccountedFor) accounted for" }
        return nil
    }

    /// Describes a call that waits for an object that no longer exists, and so would never end.
    private func callWithoutSubject() -> String? {
        let call = calls.waitingCall { subject in
            switch subject {
            case .other, .lanes, .time, .close: false
            case .stream(let stream): observers.streams[stream] == nil
            case .lane(let link), .endOfLink(let link), .procedure(let link), .reconfiguration(let link),
                .security(let link):
                links[link] == nil
            case .startOfAdvertisement(let identifier), .endOfAdvertisement(let identifier):
                !gap.advertising.entries.contains { $0.identifier == identifier }
            case .subeventData(let identifier): !gap.subevents.advertisements.contains(identifier)
            case .connection(let attempt): !gap.connecting.attempts.contains { $0.identifier == attempt }
            }
        }
        return call.map { "a call waits for something that has ended: \($0)" }
    }

    private func contradictionInProcedures(of link: Link) -> String? {
        for procedure in LinkProcedure.allCases where link.control.procedures[procedure].isPostponed {
            if procedure == .connectionUpdate, link.channels.isParameterRequestPending { continue }
            return "the \(procedure) waits for nothing"
        }
        return nil
    }

    private func disagreementAboutSecurity(of link: Link) -> String? {
        if let contradiction = link.security.contradiction(securityContext(of: link)) { return contradiction }
        if !link.att.hasSecurity(link.security.published) {
            return "attributes and client have other security than the link"
        }
        let isLaneVerified = link.security.state.waiting.contains { $0.caller == .clientLane }
        if link.att.isVerifying != isLaneVerified { return "calls wait for a verification that nothing brings about" }
        if case .failed = link.security.published.gate, turn.phase == .idle, !link.client.isIdle,
            link.att.bearer.awaitedRequest == nil, !link.client.isElevating
        {
            return "procedures wait for a verification that has failed"
        }
        return nil
    }

    /// Describes what calls and requests wait for, one line each.
    package func whatIsAwaited() -> [String] {
        var lines: [String] = []
        switch power {
        case .starting, .recovering: lines.append("the controller to come up")
        case .off, .on, .closed: break
        }
        if let opcode = session.commands.opcodeInFlight { lines.append("the controller's answer to \(opcode)") }
        for attempt in gap.connecting.attempts {
            let names = attempt.addresses.inOrder.map { "\($0)" }.joined(separator: " or ")
            lines.append("a connection to \(names)")
        }
        for link in links.values {
            if let request = link.att.bearer.awaitedRequest { lines.append("\(link.peer)'s response to \(request)") }
            for bearer in link.att.enhanced?.bearers ?? [] {
                guard let request = bearer.transactions.awaitedRequest else { continue }
                lines.append("\(link.peer)'s response to \(request) on an enhanced bearer")
            }
            if link.att.indicationInFlight != nil { lines.append("\(link.peer)'s confirmation of an indication") }
            if !link.att.lanes.isEmpty { lines.append("\(link.att.lanes.count) call(s) for \(link.peer) to be sent") }
            if !link.att.drains.isEmpty { lines.append("packets to \(link.peer) to be sent") }
            if !link.att.signedWrites.isEmpty {
                lines.append("the counter of a signed write of \(link.peer) to be stored")
            }
            if link.channels.awaitsAnswer { lines.append("\(link.peer)'s answer to a request for channels") }
            if link.channels.holdsReconfiguration { lines.append("\(link.peer) to use credits before a longer MPS") }
            if !link.security.state.waiting.isEmpty { lines.append("the link to \(link.peer) to be secure") }
            if link.security.state.question != nil { lines.append("the answer to a question about \(link.peer)") }
            let control = link.control
            for procedure in LinkProcedure.allCases where control.procedures[procedure].isRunning {
                lines.append("the \(procedure) on the link to \(link.peer)")
            }
            if control.procedures[.connectionUpdate].isPostponed {
                lines.append("\(link.peer)'s answer to an earlier request, before the next update of parameters")
            }
            if control.isDisconnecting { lines.append("the link to \(link.peer) to end") }
        }
        if bonds.pendingSaveCount > 0 { lines.append("\(bonds.pendingSaveCount) change(s) of bonds to be saved") }
        let scanCount = gap.scanning.scans.sessions.count
        if scanCount > 0 { lines.append("\(scanCount) scan(s) for advertisements") }
        return lines
    }

    /// Sends a frame with any payload, valid or not, as a peer that breaks the protocol would.
    package func sendUnchecked(_ payload: [UInt8], on channel: ChannelIdentifier, of identifier: LinkIdentifier) {
        guard let link = links[identifier] else { return }
        var buffer = sender.takeBuffer()
        buffer.append(payload)
        send(consume buffer, .value, on: channel, of: link)
        endInput()
    }

    /// Answers a request of the Attribute Protocol with any bytes, valid or not.
    package func answer(_ request: UInt64, on identifier: LinkIdentifier, withUnchecked pdu: [UInt8]) {
        guard let link = links[identifier] else { return }
        var discarded = sender.takeBuffer()
        _ = link.session.complete(request, with: .failure(.unlikelyError), into: &discarded)
        sender.recycle(discarded)
        link.att.bearer.responseWillBeSent()
        sendUnchecked(pdu, on: .attribute, of: identifier)
    }
}
