import BluetoothTypes
import HCI
import OrderedCollections

/// Under which addresses a host shows itself and knows its peers, and what of that the controller has been told.
struct Privacy {
    /// A device on the controller's resolving list.
    struct Entry: Hashable {
        let identity: DeviceAddress
        /// Zero where the peer has none.
        let peerKey: UInt128
        /// Zero where the controller is to use no private address towards the peer.
        let localKey: UInt128
    }

    /// The controller's resolving list.
    struct ResolvingList {
        let capacity: Int
        var entries: OrderedDictionary<DeviceAddress, Entry> = [:]
        /// What the controller did not take; not tried again until it is reset.
        var refused: Set<Entry> = []
        var isResolving = false

        /// Whether the controller knows a peer by its private addresses.
        func resolves(_ identity: DeviceAddress) -> Bool {
            isResolving && entries[identity].map { $0.peerKey != 0 } ?? false
        }
    }

    /// What rests, for the controller to take a change of addresses.
    enum Hold {
        case nothing
        case scanningAndInitiating
        case everything
    }

    var resolver = AddressResolver()
    /// The private address of the host's own making; nil where it uses none.
    var privateAddress: DeviceAddress?
    /// The random address that the controller has been given.
    var randomAddress: DeviceAddress?
    /// nil where the controller has none.
    var list: ResolvingList?
    /// Whether the controller makes this host's private addresses itself, for advertising at least.
    var isMadeByController = false
    var rotationTimer: TimerQueue.Token?
    var hold = Hold.nothing
    var reconciliation = Reconciliation()
    /// Wait until what is held rests.
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
