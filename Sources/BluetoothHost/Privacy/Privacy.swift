import BluetoothTypes
import HCI
import OrderedCollections

/// The private addresses of a host and its peers, and their state in the controller.
struct Privacy {
    /// A device on the controller's resolving list.
    struct Entry: Hashable {
        let identity: DeviceAddress
        /// The peer's key; zero if it has none.
        let peerKey: UInt128
        /// This host's key; zero if the controller must not use a private address towards the peer.
        let localKey: UInt128
    }

    /// The controller's resolving list.
    struct ResolvingList {
        let capacity: Int
        var entries: OrderedDictionary<DeviceAddress, Entry> = [:]
        /// Entries that the controller refused. They are not tried again until it is reset.
        var refused: Set<Entry> = []
        var isResolving = false

        /// Whether the controller resolves a peer's private addresses.
        func resolves(_ identity: DeviceAddress) -> Bool {
            isResolving && entries[identity].map { $0.peerKey != 0 } ?? false
        }
    }

    /// The activities that are paused for a change of addresses.
    enum Hold {
        case nothing
        case scanningAndInitiating
        case everything
    }

    var resolver = AddressResolver()
    /// The private address that this host generated; nil if it uses none.
    var privateAddress: DeviceAddress?
    /// The random address that was set in the controller.
    var randomAddress: DeviceAddress?
    /// The controller's resolving list; nil if it has none.
    var list: ResolvingList?
    /// Whether the controller generates this host's private addresses itself, at least for advertising.
    var isMadeByController = false
    var rotationTimer: TimerQueue.Token?
    var hold = Hold.nothing
    var reconciliation = Reconciliation()
    /// Continuations of calls that wait until the paused activities have stopped.
    var restWaiters: [() -> Void] = []

    mutating func forgetController() {
        randomAddress = nil
        list = nil
        isMadeByController = false
        hold = .nothing
    }
}

extension Privacy.Entry: CustomReflectable {
    var customMirror: Mirror {
        Mirror(
            self,
            children: ["identity": identity, "peerKey": Redacted(), "localKey": Redacted()],
            displayStyle: .struct
        )
    }
}
