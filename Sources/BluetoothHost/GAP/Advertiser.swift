import BluetoothTypes
import HCI

/// Names one advertisement of a host.
public struct AdvertisementIdentifier: Hashable, Sendable {
    let value: UInt64
}

/// The advertisements of a host, and what of them the controller has been told.
struct Advertiser {
    enum Phase: Equatable {
        /// The controller knows nothing of it.
        case new
        /// Configured, but not on.
        case off
        case on
        /// On, as far as is known; to be turned off and on again.
        case stale
        /// The controller has no room for it beside its connections; it is tried again when one ends.
        case blocked
        /// To be taken from the controller.
        case ending
    }

    struct Entry {
        let identifier: AdvertisementIdentifier
        let configuration: AdvertisementConfiguration
        /// The advertising handle of extended advertising.
        let handle: UInt8
        var phase = Phase.new
        /// The random address that an advertising set of extended advertising has been given.
        var address: DeviceAddress?
        /// The calls that wait until the advertisement is started, or has ended.
        var calls: [CallToken] = []
    }

    var entries: [Entry] = []
    var reconciliation = Reconciliation()
    /// How often the controller has ended an advertisement by itself.
    var endCount = 0
    var refreshTimer: TimerQueue.Token?
    /// Whether a timer is set to try again what has failed.
    var isRetryDue = false

    /// The number of advertisements that are not being stopped.
    var activeCount: Int { entries.count { $0.phase != .ending } }

    /// The lowest advertising handle that is free.
    var freeHandle: UInt8? {
        (0...0xEF).first { handle in !entries.contains { $0.handle == handle } }
    }

    /// An advertisement that leads to connections.
    var connectable: Entry? {
        entries.first { $0.configuration.isConnectable && [.on, .stale].contains($0.phase) }
    }

    /// The address of its own that the one advertisement of legacy advertising has.
    var legacyAddress: DeviceAddress? {
        entries.first { $0.phase != .ending }?.configuration.address
    }

    /// Whether the controller does not advertise, and is not being told to.
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
