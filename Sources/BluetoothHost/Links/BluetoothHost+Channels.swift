import BluetoothTypes
import L2CAP

// The operations of apps on L2CAP channels. Each call takes effect at once. Its outcome is delivered to a closure on
// the loop; outcomes are delivered in the order in which they occur.
extension BluetoothHost {
    // MARK: Services

    /// Publishes a service that accepts channels from peers.
    ///
    /// - Parameters:
    ///   - psm: the service's PSM; nil for a free one of the dynamic range.
    ///   - accept: called with each channel that a peer opens.
    /// - Returns: the PSM of the service.
    package func publishChannels(
        _ service: SPSMRegistry.Service,
        at psm: SPSM? = nil,
        accept: @escaping ChannelAcceptor
    ) throws(HostError) -> SPSM {
        guard power != .closed else { throw .closed }
        try check(service.configuration)
        do throws(SPSMRegistry.RegistrationError) {
            let registered: SPSM
            if let psm {
                try channelServices.register(service, at: psm)
                registered = psm
            } else {
                registered = try channelServices.register(service)
            }
            channelAcceptors[registered] = accept
            return registered
        } catch {
            switch error {
            case .invalidSPSM(let psm): throw .invalidArgument(Self.invalid(psm))
            case .alreadyRegistered(let psm): throw .channel(.psmInUse(psm.rawValue))
            case .noDynamicSPSMLeft: throw .channel(.noPSMLeft)
            case .invalidConfiguration: throw .invalidArgument(Self.invalidLengths)
            }
        }
    }

    /// Stops accepting channels to a service. Open channels stay open.
    package func unpublishChannels(at psm: SPSM) {
        channelServices.unregister(psm)
        channelAcceptors[psm] = nil
    }

    private static let invalidLengths = "a channel's MTU is 23 to 65535 bytes, its MPS 23 to 65533"

    private static func invalid(_ psm: SPSM) -> String {
        "a PSM is 1 to 255, not \(psm.rawValue)"
    }

    private func check(_ configuration: CreditBasedChannel.Configuration) throws(HostError) {
        guard configuration.isValid else { throw .invalidArgument(Self.invalidLengths) }
        guard Int(configuration.mps) <= Reassembler.defaultMaximumPayloadLength else {
            throw .invalidArgument(
                "this host receives an MPS of at most \(Reassembler.defaultMaximumPayloadLength) bytes"
            )
        }
    }

    // MARK: Opening

    /// Requests a channel with LE credit-based flow control. Requests leave in the order of the calls on the link.
    ///
    /// - Returns: the channel's identifier, for ``closeChannel(_:)``.
    package func beginOpeningChannel(
        to psm: SPSM,
        on identifier: LinkIdentifier,
        configuration: CreditBasedChannel.Configuration = .init(),
        completion: @escaping ChannelCompletion
    ) throws(HostError) -> HostChannelIdentifier {
        defer { endInput() }
        let link = try provableLink(identifier)
        try check(configuration)
        let channel: ChannelIdentifier
        do throws(CreditBasedChannels.ConnectionError) {
            channel = try link.channels.connect(to: psm, configuration: configuration, isHeld: true)
        } catch {
            throw Self.hostError(error)
        }
        let name = use(channel, to: psm, of: link, completion)
        var channels = ChannelIdentifierList()
        channels.append(channel)
        submit(.channelRequest(channels), on: link)
        return name
    }

    /// Requests up to five channels with enhanced credit-based flow control, in one request. `completion` is called
    /// once for each channel. Requests leave in the order of the calls on the link.
    package func beginOpeningChannels(
        _ count: Int,
        to psm: SPSM,
        on identifier: LinkIdentifier,
        configuration: CreditBasedChannel.Configuration = .init(),
        completion: @escaping ChannelCompletion
    ) throws(HostError) -> [HostChannelIdentifier] {
        defer { endInput() }
        let link = try provableLink(identifier)
        try check(configuration)
        let channels: ChannelIdentifierList
        do throws(CreditBasedChannels.ConnectionError) {
            channels = try link.channels.connect(to: psm, count: count, configuration: configuration, isHeld: true)
        } catch {
            throw Self.hostError(error)
        }
        let names = channels.map { use($0, to: psm, of: link, completion) }
        submit(.channelRequest(channels), on: link)
        return names
    }

    private func use(
        _ channel: ChannelIdentifier,
        to psm: SPSM,
        of link: Link,
        _ completion: @escaping ChannelCompletion
    ) -> HostChannelIdentifier {
        let number = makeIdentifier()
        link.channelUses[channel] = ChannelUse(number: number, psm: psm, phase: .opening(completion))
        return HostChannelIdentifier(link: link.identifier, channel: channel, number: number)
    }

    private static func hostError(_ error: CreditBasedChannels.ConnectionError) -> HostError {
        switch error {
        case .invalidSPSM(let psm): .invalidArgument(invalid(psm))
        case .invalidConfiguration: .invalidArgument(invalidLengths)
        case .invalidCount(let count): .invalidArgument("one request is for 1 to 5 channels, not \(count)")
        case .tooManyChannels: .channel(.tooManyChannels)
        }
    }

    // MARK: Using

    /// The link of a channel; nil if the channel has ended.
    private func link(of name: HostChannelIdentifier) -> Link? {
        guard let link = links[name.link], link.channelUses[name.channel]?.number == name.number else {
            return nil
        }
        return link
    }

    /// The current properties of a channel; nil if the channel has ended.
    package func information(on name: HostChannelIdentifier) -> ChannelInformation? {
        guard let channel = link(of: name)?.channels[name.channel] else { return nil }
        return ChannelInformation(
            mtu: channel.mtu,
            mps: channel.mps,
            peerMTU: channel.peerMTU,
            peerMPS: channel.peerMPS,
            unreadCount: channel.unreadCount,
            unsentCount: channel.unsentCount
        )
    }

    /// The outcome of a call that sends bytes.
    package enum SendOutcome: Hashable, Sendable {
        /// This number of bytes was accepted. If it is less than the whole, ``HostChannelEvent/hasRoom`` follows.
        case taken(Int)
        /// The channel is not open, or accepts no more data.
        case notOpen
    }

    /// Queues bytes as SDUs of the peer's MTU, until the channel's queue is full.
    package func send(_ octets: ArraySlice<UInt8>, on name: HostChannelIdentifier) -> SendOutcome {
        guard let link = link(of: name), let channel = link.channels[name.channel], channel.isOpen else {
            return .notOpen
        }
        var rest = octets
        var isOpen = true
        while !rest.isEmpty, isOpen {
            let unit = Array(rest.prefix(channel.peerMTU))
            do throws(CreditBasedChannel.SendError) {
                try link.channels.send(unit, on: name.channel)
                rest = rest.dropFirst(unit.count)
            } catch {
                if error == .noRoom { break }
                isOpen = false
            }
        }
        pumpChannels(of: link)
        endInput()
        return isOpen || rest.count < octets.count ? .taken(octets.count - rest.count) : .notOpen
    }

    /// Returns and removes all received SDUs, which lets the peer send more.
    package func readAll(from name: HostChannelIdentifier) -> [[UInt8]] {
        read(from: name, octets: .max)
    }

    /// Returns and removes received SDUs, oldest first, until their total length reaches `limit` or none is left.
    package func read(from name: HostChannelIdentifier, octets limit: Int) -> [[UInt8]] {
        guard let link = link(of: name) else { return [] }
        var units: [[UInt8]] = []
        var count = 0
        while count < limit, let unit = link.channels.read(from: name.channel) {
            count += unit.count
            units.append(unit)
        }
        guard !units.isEmpty else { return [] }
        pumpChannels(of: link)
        endInput()
        return units
    }

    /// Changes the MTU and MPS of an enhanced channel, once the peer agrees. Cancelling the task ends the wait; the
    /// lengths may change nevertheless.
    package func reconfigure(
        _ name: HostChannelIdentifier,
        mtu: UInt16,
        mps: UInt16
    ) async throws(HostError) {
        guard Int(mps) <= Reassembler.defaultMaximumPayloadLength else {
            throw .invalidArgument(
                "this host receives an MPS of at most \(Reassembler.defaultMaximumPayloadLength) bytes"
            )
        }
        try await wait(for: .reconfiguration(name)) { host, call in
            do throws(HostError) {
                try host.beginReconfiguring(name, mtu: mtu, mps: mps, for: call)
            } catch {
                host.end(call, .failure(error))
            }
        }
    }

    private func beginReconfiguring(
        _ name: HostChannelIdentifier,
        mtu: UInt16,
        mps: UInt16,
        for call: CallToken
    ) throws(HostError) {
        guard let link = link(of: name), let list = ChannelIdentifierList(CollectionOfOne(name.channel)) else {
            throw .channel(.ended(.byUs))
        }
        do throws(CreditBasedChannels.ReconfigurationError) {
            try link.channels.reconfigure(list, mtu: mtu, mps: mps)
        } catch {
            throw Self.hostError(error)
        }
        link.channelUses[name.channel]?.reconfiguration = call
        pumpChannels(of: link)
        endInput()
    }

    private static func hostError(_ error: CreditBasedChannels.ReconfigurationError) -> HostError {
        switch error {
        case .notEnhanced: .notSupported("only enhanced channels are reconfigured")
        case .pending: .notReady
        case .notOpen: .channel(.ended(.byUs))
        case .reductionOfMTUNotAllowed, .reductionOfMPSNotAllowed, .invalidChannels, .invalidParameters:
            .invalidArgument("a channel's MTU cannot be reduced, and both lengths are 64 or more")
        }
    }

    // MARK: Ending

    /// Ends a channel at once, or cancels its opening. Unsent data is lost.
    package func closeChannel(_ name: HostChannelIdentifier) {
        guard let link = link(of: name) else { return }
        link.channels.disconnect(name.channel)
        channelMayBeGivenUp(name.channel, on: link)
        endInput()
    }

    /// Ends a channel once all queued data is sent. It receives until then.
    package func finishChannel(_ name: HostChannelIdentifier) {
        guard let link = link(of: name) else { return }
        link.channels.finish(name.channel)
        channelMayBeGivenUp(name.channel, on: link)
        endInput()
    }

    /// Removes the request for a channel from its lane, if the link's channels no longer hold it.
    private func channelMayBeGivenUp(_ channel: ChannelIdentifier, on link: Link) {
        if !link.channels.isHeld(channel), link.att.removeRequest(for: channel) { pumpLanes(of: link) }
        pumpChannels(of: link)
    }

    /// Ends the opening of a channel with an error. Does nothing if the opening has ended.
    func endOpening(of channel: ChannelIdentifier, on link: Link, _ error: HostError) {
        guard let use = link.channelUses[channel], case .opening(let completion) = use.phase else { return }
        link.channelUses[channel] = nil
        link.channels.disconnect(channel)
        if !link.channels.isHeld(channel) { _ = link.att.removeRequest(for: channel) }
        deliver(.channelFailure(completion, error))
    }
}
