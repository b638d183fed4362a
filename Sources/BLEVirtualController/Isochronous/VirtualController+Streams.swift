import BLEByteCoding
import BLEHCI
import BluetoothTypes

/// The isochronous groups and streams of a controller, until it is reset.
struct IsochronousState {
    /// The longest load of an ISO packet in bytes.
    static let packetLength: UInt16 = 255
    /// The number of ISO packets from the host that the controller buffers: enough for two of the longest SDUs. The
    /// buffers of an SDU are free when all of it was sent.
    static let packetCount: UInt8 = 34
    /// The default of Connection Accept Timeout, after which a request that the host has not answered is rejected (Vol
    /// 4, Part E, 6.7).
    static let acceptTimeout = Duration.seconds(5)
    /// The handles of streams, which no link has.
    static let handles: ClosedRange<UInt16> = 0x0E60...0x0EFF

    /// Maximum number of streams in a group.
    static let maximumStreamsInGroup = 31

    /// A group of connected streams, as the central.
    struct Group {
        /// The handles of the streams, in the order of their creation.
        var handles: [ConnectionHandle] = []
        /// Whether the parameters may change: no stream of the group has been created since the group exists.
        var isConfigurable = true
    }

    /// The groups that the host has configured, by CIG_ID.
    var groups: [UInt8: Group] = [:]
    var streams: [ConnectionHandle: StreamEnd] = [:]
    /// The broadcast groups that the controller sends, by BIG_Handle.
    var broadcasts: [UInt8: BroadcastGroup] = [:]
    /// The broadcast groups that the controller receives, or tries to, by BIG_Handle.
    var receptions: [UInt8: BroadcastReception] = [:]
    /// The streams of broadcast groups that the controller sends or receives.
    var broadcastStreams: [ConnectionHandle: StreamEndpoint] = [:]
    /// The number of used buffers for the host's ISO packets.
    var packetsHeld = 0

    /// Free handles, lowest first.
    func freeHandles(_ count: Int) -> [ConnectionHandle]? {
        let free = IsochronousState.handles.lazy.map { ConnectionHandle($0) }.filter {
            streams[$0] == nil && broadcastStreams[$0] == nil
        }.prefix(count)
        return free.count == count ? Array(free) : nil
    }

    /// The stream with a handle, of any kind.
    func endpoint(_ handle: ConnectionHandle) -> StreamEndpoint? { streams[handle] ?? broadcastStreams[handle] }
}

extension VirtualController {
    /// Whether the controller supports isochronous streams.
    var hasStreams: Bool {
        !configuration.features.isDisjoint(with: .streams)
    }

    /// The time by the controller's clock, in microseconds.
    func timeStamp(_ instant: Instant) -> UInt32 {
        UInt32(truncatingIfNeeded: instant.nanoseconds / 1000)
    }

    // MARK: Establishing

    /// Requests a stream of the peripheral.
    func create(_ stream: StreamEnd, on link: LinkEnd) {
        stream.phase = .creating
        stream.link = link
        let peer = link.other
        let delay = link.link.parameters.intervalDuration
        stream.schedule(after: delay) { stream in
            guard !link.isGone else { return }
            guard !peer.isGone else { return stream.end(.connectionFailedToBeEstablished) }
            peer.controller.receiveRequest(of: stream, on: peer)
        }
    }

    private func receiveRequest(of central: StreamEnd, on link: LinkEnd) {
        guard configuration.features.contains(.connectedIsochronousStreamPeripheral),
            hostFeatures.contains(.connectedIsochronousStreamHostSupport),
            host.wants(subevent: LECISRequest.subeventCode), let handle = isochronous.freeHandles(1)?.first
        else { return central.end(.unsupportedRemoteFeature) }
        let stream = StreamEnd(controller: self, handle: handle, parameters: central.parameters)
        stream.phase = .creating
        stream.link = link
        stream.other = central
        central.other = stream
        isochronous.streams[handle] = stream
        stream.schedule(after: IsochronousState.acceptTimeout) { stream in
            guard stream.phase == .creating, !stream.isAccepted else { return }
            let central = stream.partner
            stream.end(.connectionAcceptTimeoutExceeded)
            central?.end(.connectionAcceptTimeoutExceeded)
        }
        tellLE(
            LECISRequest(
                aclConnectionHandle: link.handle,
                cisConnectionHandle: handle,
                cigID: central.parameters.cigID,
                cisID: central.parameters.cis.cisID
            )
        )
    }

    /// Handles the acceptance of a request by the host.
    func accept(_ stream: StreamEnd) {
        guard stream.partner != nil else { return stream.end(.connectionFailedToBeEstablished) }
        stream.isAccepted = true
        stream.schedule(after: stream.parameters.interval) { stream in
            guard let central = stream.partner else { return }
            for end in [central, stream] {
                end.phase = .established
                end.tellEstablished()
            }
            VirtualController.runEvents(between: central, stream, counter: 0)
        }
    }

    /// Handles the rejection of a request by the host.
    func reject(_ stream: StreamEnd, _ reason: HCIErrorCode) {
        let central = stream.partner
        stream.abandon()
        central?.schedule(after: stream.parameters.interval) { $0.end(reason) }
    }

    /// Runs one event of a stream in each ISO interval, until the stream has ended.
    private static func runEvents(between central: StreamEnd, _ peripheral: StreamEnd, counter: UInt64) {
        central.controller.schedule(after: central.parameters.interval) { [weak central, weak peripheral] _ in
            guard let central, let peripheral, central.phase == .established, peripheral.phase == .established,
                central.other === peripheral
            else { return }
            central.sendBurst(to: peripheral, counter: counter)
            peripheral.sendBurst(to: central, counter: counter)
            runEvents(between: central, peripheral, counter: counter + 1)
        }
    }

    // MARK: The end

    /// Ends the streams of a link that has ended at this end.
    func endStreams(of link: LinkEnd, _ reason: HCIErrorCode) {
        for handle in isochronous.streams.keys.sorted(by: { $0.rawValue < $1.rawValue }) {
            guard let stream = isochronous.streams[handle], stream.link === link else { continue }
            stream.end(reason)
        }
    }

    /// Ends all streams without a report, because the controller is reset.
    func abandonStreams() {
        for stream in isochronous.streams.values { stream.abandon() }
        abandonBroadcasts()
        isochronous = IsochronousState()
    }

    // MARK: Data

    /// Handles an ISO packet from the host (Vol 4, Part E, 5.4.5).
    func receiveISO(_ packet: RawSpan) {
        guard let packet = try? ISOPacket(decoding: packet),
            let stream = isochronous.endpoint(packet.header.connectionHandle), stream.isEstablished,
            stream.paths.contains(.input), packet.header.dataLoadLength <= IsochronousState.packetLength
        else {
            host.statistics.malformedPackets += 1
            return
        }
        host.statistics.isoPacketsFromHost += 1
        guard isochronous.packetsHeld < Int(IsochronousState.packetCount) else {
            host.statistics.packetsBeyondCredit += 1
            return tell(DataBufferOverflow(linkType: .iso))
        }
        isochronous.packetsHeld += 1
        if let header = packet.loadHeader {
            discardPartialSDU(of: stream)
            stream.partial = (header, [], 0)
        }
        guard var partial = stream.partial else {
            host.statistics.malformedPackets += 1
            return discard(1, of: stream)
        }
        partial.bytes += [UInt8](copying: packet.payload)
        partial.packetCount += 1
        stream.partial = partial
        let isEnd = packet.header.packetBoundaryFlag == .complete || packet.header.packetBoundaryFlag == .last
        let isTooLong = partial.bytes.count > Int(partial.header.sduLength)
        guard isEnd || isTooLong else { return }
        stream.partial = nil
        guard partial.bytes.count == Int(partial.header.sduLength), partial.bytes.count <= stream.maximumSDU else {
            host.statistics.malformedPackets += 1
            return discard(partial.packetCount, of: stream)
        }
        stream.enqueue(StreamEndpoint.Unit(bytes: partial.bytes, packetCount: partial.packetCount))
    }

    /// Discards the fragments of an SDU whose other fragments the host has not sent, and returns their buffers.
    func discardPartialSDU(of stream: StreamEndpoint) {
        guard let partial = stream.partial else { return }
        stream.partial = nil
        discard(partial.packetCount, of: stream)
    }

    /// Returns the buffers of packets that are not sent.
    private func discard(_ count: Int, of stream: StreamEndpoint) {
        isochronous.packetsHeld -= count
        tellCompleted(UInt16(truncatingIfNeeded: count), on: stream.handle)
    }
}
