import BluetoothTypes
import HCI

/// The identifier of one advertisement of a host.
public struct AdvertisementIdentifier: Hashable, Sendable {
    let value: UInt64
}

/// The advertisements of a host, and their state in the controller.
struct Advertiser {
    enum Phase: Equatable {
        /// The controller has no configuration for it.
        case new
        /// It is configured and off.
        case off
        case on
        /// It is on, as far as the host knows, and is to be turned off and on again.
        case stale
        /// The controller cannot advertise in addition to its connections. It is tried again when a connection ends.
        case blocked
        /// It is to be removed from the controller.
        case ending
    }

    struct Entry {
        let identifier: AdvertisementIdentifier
        let configuration: AdvertisementConfiguration
        /// The advertising handle of extended advertising.
        let handle: UInt8
        var phase = Phase.new
        /// The random address that was set for an extended advertising set.
        var address: DeviceAddress?
        /// The calls that wait until the advertisement has started or ended.
        var calls: [CallToken] = []
    }

    var entries: [Entry] = []
    var reconciliation = Reconciliation()
    /// The number of times that the controller has ended an advertisement by itself.
    var endCount = 0
    var refreshTimer: TimerQueue.Token?
    /// Whether a timer is set that tries a failed advertisement again.
    var isRetryDue = false

    /// The number of advertisements that are not being stopped.
    var activeCount: Int { entries.count { $0.phase != .ending } }

    /// The lowest free advertising handle.
    var freeHandle: UInt8? {
        (0...0xEF).first { handle in !entries.contains { $0.handle == handle } }
    }

    /// An advertisement that accepts connections.
    var connectable: Entry? {
        entries.first { $0.configuration.isConnectable && [.on, .stale].contains($0.phase) }
    }

    /// The random address of the advertisement, in legacy advertising, which has only one.
    var legacyAddress: DeviceAddress? {
        entries.first { $0.phase != .ending }?.configuration.address
    }

    /// Whether the controller does not advertise, and no command for it is in progress.
    var isResting: Bool {
        !reconciliation.isRunning && !entries.contains { [.on, .stale].contains($0.phase) }
    }

    func index(of identifier: AdvertisementIdentifier) -> Int? {
        entries.firstIndex { $0.identifier == identifier }
    }

    /// Removes a call that waits for an advertisement.
    mutating func remove(_ call: CallToken, of identifier: AdvertisementIdentifier) {
        guard let index = index(of: identifier) else { return }
        entries[index].calls.removeAll { $0 == call }
    }

    mutating func forgetController() {
        entries.removeAll { $0.phase == .ending && $0.calls.isEmpty }
        for index in entries.indices where entries[index].phase != .ending { entries[index].phase = .new }
    }
}
