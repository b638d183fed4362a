import BLEHCI
import BluetoothTypes
import OrderedCollections

/// The controller's resolving list, as the host has set it up (Vol 6, Part B, 4.7).
struct ResolvingList: Equatable {
    /// A device on the list.
    struct Entry: Hashable {
        let identity: DeviceAddress
        /// The peer's key; zero if it has none.
        let peerKey: UInt128
        /// This host's key; zero if the controller must not use a private address towards the peer.
        let localKey: UInt128
    }

    /// One command that changes the list.
    enum Change: Equatable {
        /// How long the controller uses a private address, in seconds.
        case setTimeout(UInt16)
        case remove(Entry)
        case add(Entry)
        case setPrivacyMode(DeviceAddress)
        case setResolving(Bool)

        func command(_ privacyMode: PrivacyMode) -> GAPCommand {
            switch self {
            case .setTimeout(let seconds): GAPCommand(LESetResolvablePrivateAddressTimeout(rpaTimeout: seconds))
            case .remove(let entry):
                GAPCommand(LERemoveDeviceFromResolvingList(peerIdentityAddress: entry.identity))
            case .add(let entry):
                GAPCommand(
                    LEAddDeviceToResolvingList(
                        peerIdentityAddress: entry.identity,
                        peerIRK: entry.peerKey,
                        localIRK: entry.localKey
                    )
                )
            case .setPrivacyMode(let identity):
                GAPCommand(LESetPrivacyMode(peerIdentityAddress: identity, privacyMode: privacyMode))
            case .setResolving(let isResolving):
                GAPCommand(LESetAddressResolutionEnable(addressResolutionEnable: isResolving))
            }
        }
    }

    /// Maximum number of entries.
    let capacity: Int
    private(set) var entries: OrderedDictionary<DeviceAddress, Entry> = [:]
    /// Whether the controller resolves addresses.
    private(set) var isResolving = false
    /// Entries that the controller refused. They are not tried again until it is reset.
    private var refused: Set<Entry> = []
    /// Whether the controller has refused device privacy mode for a peer.
    private(set) var refusesPrivacyMode = false
    /// The private address timeout that the controller has to be told.
    private var timeout: UInt16?
    /// The entry that was added last, while its privacy mode is not set.
    private var withoutPrivacyMode: DeviceAddress?
    /// The identity addresses of entries that are removed and added again.
    private var outdated: Set<DeviceAddress> = []
    /// Whether entries have changed since resolution was last turned on or off.
    private var hasChanged = false

    /// - Parameters:
    ///   - capacity: maximum number of entries.
    ///   - timeout: the private address timeout in whole seconds; nil if this host uses no private addresses.
    init(capacity: Int, timeout: Duration?) {
        self.capacity = capacity
        self.timeout = timeout.map { UInt16(clamping: $0.components.seconds) }
    }

    /// Whether the controller resolves a peer's private addresses.
    func resolves(_ identity: DeviceAddress) -> Bool {
        isResolving && entries[identity].map { $0.peerKey != 0 } ?? false
    }

    /// Has an entry removed and added again, if there is one with a key of this host. The controller then makes a new
    /// private address for it.
    mutating func renew(_ identity: DeviceAddress) {
        guard let entry = entries[identity], entry.localKey != 0 else { return }
        outdated.insert(identity)
    }

    /// The next command that brings the list to the wanted entries; nil if it has them.
    ///
    /// - Parameter wanted: the entries, the most important one first. If not all fit, the last ones are left out.
    func nextChange(wanted: [Entry]) -> Change? {
        if let timeout { return .setTimeout(timeout) }
        if let withoutPrivacyMode { return .setPrivacyMode(withoutPrivacyMode) }
        let taken = wanted.lazy.filter { !refused.contains($0) }.prefix(capacity)
        let isTaken = Set(taken)
        if let entry = entries.values.first(where: { !isTaken.contains($0) || outdated.contains($0.identity) }) {
            return .remove(entry)
        }
        if let entry = taken.first(where: { entries[$0.identity] != $0 }) { return .add(entry) }
        let mustResolve = !entries.isEmpty
        return hasChanged && isResolving != mustResolve ? .setResolving(mustResolve) : nil
    }

    // MARK: Replies

    /// Records that the controller has performed a command.
    mutating func finish(_ change: Change, hasPrivacyModes: Bool) {
        switch change {
        case .setTimeout: timeout = nil
        case .remove(let entry): remove(entry)
        case .add(let entry):
            entries[entry.identity] = entry
            hasChanged = true
            if hasPrivacyModes { withoutPrivacyMode = entry.identity }
        case .setPrivacyMode: withoutPrivacyMode = nil
        case .setResolving(let isResolving):
            self.isResolving = isResolving
            hasChanged = false
        }
    }

    /// Records that the controller has refused a command. The host continues without it.
    ///
    /// - Parameter mode: the privacy mode of the host.
    mutating func refuse(_ change: Change, in mode: PrivacyMode) {
        switch change {
        case .setTimeout: timeout = nil
        case .remove(let entry): remove(entry)
        case .add(let entry): refused.insert(entry)
        case .setPrivacyMode(let identity):
            withoutPrivacyMode = nil
            // The entry is in network privacy mode (Vol 4, Part E, 7.8.77): the controller ignores the peer under its
            // identity address. So in device privacy mode, no peer is wanted on the list: see
            // ``AddressPlan/canListPeers(_:)``.
            if mode == .device, let entry = entries[identity], entry.peerKey != 0 { refusesPrivacyMode = true }
        case .setResolving: hasChanged = false
        }
    }

    private mutating func remove(_ entry: Entry) {
        entries[entry.identity] = nil
        outdated.remove(entry.identity)
        hasChanged = true
    }
}

extension ResolvingList.Entry: CustomReflectable {
    var customMirror: Mirror {
        Mirror(
            self,
            children: ["identity": identity, "peerKey": Redacted(), "localKey": Redacted()],
            displayStyle: .struct
        )
    }
}
