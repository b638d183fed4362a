import BLEL2CAP
import BluetoothTypes

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
        try ChannelEngine.check(service.configuration)
        do throws(SPSMRegistry.RegistrationError) {
            return try services.publish(service, at: psm, accept: accept)
        } catch {
            switch error {
            case .invalidSPSM(let psm): throw .invalidPSM(psm)
            case .alreadyRegistered(let psm): throw .channel(.psmInUse(psm.rawValue))
            case .noDynamicSPSMLeft: throw .channel(.noPSMLeft)
            case .invalidConfiguration: throw .invalidChannelLengths
            }
        }
    }

    /// Stops accepting channels to a service. Open channels stay open.
    package func unpublishChannels(at psm: SPSM) {
        // The app's closure is released after the removal.
        if let acceptor = services.removeChannels(at: psm) { deliver(.release(acceptor)) }
        endInput()
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
        let link = try linkForOpening(identifier)
        let name = try link.channels.connect(to: psm, configuration: configuration)
        request([name], on: link, completion)
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
        let link = try linkForOpening(identifier)
        let names = try link.channels.connect(to: psm, count: count, configuration: configuration)
        request(names, on: link, completion)
        return names
    }

    func request(_ names: [HostChannelIdentifier], on link: Link, _ completion: @escaping ChannelCompletion) {
        var channels = ChannelIdentifierList()
        for name in names {
            _ = link.channels.observe(name, observers.channels.insert(.opening(completion)))
            channels.append(name.channel)
        }
        submit(.channelRequest(channels), on: link)
    }

    // MARK: Using

    /// The current properties of a channel; nil if the channel has ended.
    package func information(on name: HostChannelIdentifier) -> ChannelInformation? {
        links[name.link]?.channels.information(on: name)
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
        guard let link = links[name.link], let count = link.channels.send(octets, on: name) else { return .notOpen }
        pumpChannels(of: link)
        endInput()
        return .taken(count)
    }

    /// Returns and removes all received SDUs, which lets the peer send more.
    package func readAll(from name: HostChannelIdentifier) -> [[UInt8]] {
        read(from: name, byteLimit: .max)
    }

    /// Returns and removes received SDUs, oldest first, until their total length in bytes reaches `limit` or none is
    /// left.
    package func read(from name: HostChannelIdentifier, byteLimit limit: Int) -> [[UInt8]] {
        guard let link = links[name.link] else { return [] }
        let units = link.channels.read(from: name, limit: limit)
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
        try await wait(for: .reconfiguration(name.link)) { host, call in
            do throws(HostError) {
                let link = try host.link(name.link)
                try link.channels.reconfigure(name, mtu: mtu, mps: mps, for: call)
                host.pumpChannels(of: link)
                host.endInput()
            } catch {
                host.end(call, .failure(error))
            }
        }
    }

    // MARK: Ending

    /// Ends a channel at once, or cancels its opening. Unsent data is lost.
    package func closeChannel(_ name: HostChannelIdentifier) {
        guard let link = links[name.link] else { return }
        link.channels.disconnect(name)
        channelMayBeGivenUp(name.channel, on: link)
        endInput()
    }

    /// Ends a channel once all queued data is sent. It receives until then.
    package func finishChannel(_ name: HostChannelIdentifier) {
        guard let link = links[name.link] else { return }
        link.channels.finish(name)
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
        guard link.channels.endOpening(of: channel, error) else { return }
        performChannelEffects(of: link)
        if !link.channels.isHeld(channel) { _ = link.att.removeRequest(for: channel) }
    }
}
