import BLEHCI
import BluetoothTypes

/// A broadcast isochronous group that a controller receives, or tries to (Vol 6, Part B, 4.4.6).
final class BroadcastReception {
    /// A received stream.
    final class Stream: StreamEndpoint {
        /// Whether the group is being received.
        fileprivate(set) var isReceived = true

        override var isEstablished: Bool { isReceived }
        override var possiblePaths: ISODataPathDirections { .output }
    }

    unowned let controller: VirtualController
    let command: LEBIGCreateSync
    /// The synchronization with the train that announces the group.
    private let sync: PeriodicSync
    private weak var group: BroadcastGroup?
    /// The received streams, in the order of the command; empty while the group is not received.
    private(set) var streams: [Stream] = []
    private var lastHeard = Instant(nanoseconds: 0)
    /// Fires when the reception searches again, tries the next event, or checks its deadline.
    private let timer = Air.Timer()
    private(set) var isOver = false

    init(_ command: LEBIGCreateSync, on sync: PeriodicSync, controller: VirtualController) {
        self.command = command
        self.sync = sync
        self.controller = controller
    }

    /// Whether the group has not been received yet.
    var isPending: Bool { streams.isEmpty }
    private var timeout: Duration { .milliseconds(10 * Int(command.bigSyncTimeout)) }

    // MARK: Synchronizing

    /// Waits until the train announces a group.
    func search() {
        guard !isOver else { return }
        guard let train = sync.train else { return fail(.connectionFailedToBeEstablished) }
        guard let group = train.broadcast, group.announcement(on: sync.handle) != nil else {
            return controller.schedule(after: train.intervalDuration, on: timer) { [weak self] _ in self?.search() }
        }
        guard command.streams.allSatisfy({ $0 <= group.command.numBIS }) else {
            return fail(.unsupportedFeatureOrParameterValue)
        }
        guard (command.broadcastCode == nil) == (group.command.broadcastCode == nil) else {
            return fail(.encryptionModeNotAcceptable)
        }
        acquire(group, attempts: 6)
    }

    /// Receives the first event of the group. The synchronization fails after six events (Vol 6, Part B, 4.4.6.4).
    private func acquire(_ group: BroadcastGroup, attempts: Int) {
        controller.schedule(after: group.interval, on: timer) { [weak self, weak group] controller in
            guard let self, !isOver else { return }
            guard let group, !group.isEnding, attempts > 0 else { return fail(.connectionFailedToBeEstablished) }
            guard group.reaches(controller, attempts: 1) else { return acquire(group, attempts: attempts - 1) }
            guard let handles = controller.isochronous.freeHandles(command.streams.count) else {
                return fail(.connectionRejectedDueToLimitedResources)
            }
            begin(group, handles)
        }
    }

    private func begin(_ group: BroadcastGroup, _ handles: [ConnectionHandle]) {
        self.group = group
        streams = handles.map { Stream(controller: controller, handle: $0) }
        for stream in streams { controller.isochronous.broadcastStreams[stream.handle] = stream }
        group.add(self)
        lastHeard = controller.air.now
        controller.tellLE(
            LEBIGSyncEstablished(
                bigHandle: command.bigHandle,
                timing: group.timing,
                connectionHandles: handles
            )
        )
        watch(until: lastHeard + timeout)
    }

    private func fail(_ status: HCIErrorCode) {
        abandon()
        controller.tellLE(
            LEBIGSyncEstablished(
                status: status,
                bigHandle: command.bigHandle,
                timing: BIGTiming(transportLatency: 0, nse: 0, bn: 0, irc: 0, maxPDU: 0, isoInterval: 0),
                connectionHandles: []
            )
        )
    }

    // MARK: Receiving

    /// Returns whether the receiver hears an event of the group.
    func hears(_ group: BroadcastGroup) -> Bool {
        guard group.reaches(controller, attempts: Int(group.timing.irc)) else { return false }
        lastHeard = controller.air.now
        return true
    }

    /// Whether the code of the host is that of the group.
    func authenticates(_ group: BroadcastGroup) -> Bool { command.broadcastCode == group.command.broadcastCode }

    /// Takes an SDU of a stream of the group.
    ///
    /// - Parameter bytes: nil if it was lost.
    func take(_ bytes: [UInt8]?, of stream: Int, number: UInt16) {
        guard let index = command.streams.firstIndex(of: UInt8(stream + 1)) else { return }
        streams[index].deliver(bytes, number: number)
    }

    /// Checks at the deadline whether the group is still being received.
    private func watch(until deadline: Instant) {
        controller.schedule(after: deadline - controller.air.now, on: timer) { [weak self] controller in
            guard let self, !isOver else { return }
            let next = lastHeard + timeout
            guard next <= controller.air.now else { return watch(until: next) }
            end(.connectionTimeout)
        }
    }

    // MARK: The end

    /// Ends the reception, and reports it to the host.
    func end(_ reason: HCIErrorCode) {
        guard !isOver else { return }
        abandon()
        controller.tellLE(LEBIGSyncLost(bigHandle: command.bigHandle, reason: reason))
    }

    /// Ends the reception by request of the host.
    func cancel() {
        guard isPending else { return abandon() }
        isOver = true
        // The answer to the command is sent first.
        controller.schedule { [self] _ in fail(.operationCancelledByHost) }
    }

    /// Ends the reception without a report.
    func abandon() {
        isOver = true
        controller.air.cancel(timer)
        group?.remove(self)
        group = nil
        for stream in streams {
            stream.isReceived = false
            stream.dropData()
            controller.isochronous.broadcastStreams[stream.handle] = nil
        }
        controller.isochronous.receptions[command.bigHandle] = nil
    }
}
