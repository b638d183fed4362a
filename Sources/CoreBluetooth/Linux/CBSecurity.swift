import BLE
import BLESMP
import BluetoothHost
import BluetoothTypes
import Foundation

/// The pairing settings and the bonds of a manager's host. Managers that share an adapter share them.
///
/// An app need not use this, as with Apple's framework: the host pairs when a value that needs encryption is used.
/// Without a delegate, the managers accept only Just Works. They accept it if this host has begun the pairing, or if it
/// serves values or channels that need encryption. They let it replace a bond only on a link that is encrypted with the
/// bond's key.
///
/// Settings that are made while the adapter is being opened take effect once it is open, even if the first attempts
/// fail. A call between two attempts has no effect and is reported on standard error.
public struct CBSecurity: Sendable {
    let shared: SharedHost

    /// Sets the security policy from now on; see `SecurityPolicy`. The delegate shows passkeys and asks for them.
    ///
    /// An `Adapter` that the app has opened and given to a manager has its own policy again once the last manager on it
    /// is released.
    public func setPolicy(_ policy: SecurityPolicy) {
        submit { host, open in open.setSecurityPolicy(policy, on: host) }
    }

    /// Sets the delegate that answers for a person when devices pair; nil if managers answer by themselves.
    ///
    /// A delegate that is an object is not kept alive, like other delegates: the app keeps it, and it may own a
    /// manager. Once it is released, all pairings that ask a question are refused. A delegate that is a value is kept
    /// until another one is set, or until the last manager on the adapter is released. So it must not refer to a
    /// manager strongly. An `Adapter` that the app has opened and given to a manager keeps its own delegate until this
    /// is called.
    public func setPairingDelegate(_ delegate: (any PairingDelegate)?) {
        // The call may wait until the adapter is open. A strong reference to an object that owns a manager would keep
        // the manager until then.
        let delegate = Pairing.withoutRetaining(delegate)
        submit { host, open in open.setPairingDelegate(delegate, on: host) }
    }

    private func submit(_ call: String = #function, _ action: @escaping SharedHost.Action) {
        if !shared.submit(action) { reportClosed(call) }
    }

    private func reportClosed(_ call: String = #function) {
        ProgrammerError.report("\(call) has no effect: no manager has the adapter open")
    }

    /// Lets peers begin pairings for `duration`, if the policy is `SecurityPolicy.Pairable.duringWindow`. Replaces an
    /// open window.
    public func openPairingWindow(for duration: Duration) {
        submit { host, _ in host.openPairingWindow(for: duration) }
    }

    /// Ends the pairing window. Pairings under way continue.
    public func closePairingWindow() {
        submit { host, _ in host.closePairingWindow() }
    }

    /// Sends a keypress notification to a peer while `PairingQuestion.enterPasskey` is open (Vol 3, Part H, 3.5.8).
    /// ``events`` reports the notifications of the peer, as `SecurityEvent.keyPressed`.
    ///
    /// - Parameters:
    ///   - kind: the change of the passkey; never the digit.
    ///   - inquiry: the inquiry that asks for the passkey.
    /// - Returns: false if nothing was sent: no passkey is asked for on the inquiry's link, or
    ///   `SecurityPolicy.usesKeypressNotifications` is not set on both sides.
    @discardableResult
    public func reportKeypress(_ kind: CBKeypress, for inquiry: PairingInquiry) async -> Bool {
        guard let open = shared.open else {
            reportClosed()
            return false
        }
        return await open.host.reportKeypress(kind, on: inquiry.link)
    }

    /// The events of links' security and of bonds, from now on.
    ///
    /// Each use creates a new sequence. It holds up to 4,096 events for a slow reader. If more arrive, the oldest are
    /// dropped, and `SecurityEvent.eventsDropped` counts them in their place. The sequence ends when the last manager
    /// on the adapter is released, or when the app closes the adapter that it has opened. If no manager uses the
    /// adapter, it ends at once. If the adapter cannot be opened, no event arrives; the managers' states report the
    /// failure.
    public var events: Events<CBSecurityEvent> { shared.events.securityEvents() }

    /// Returns the devices that this host is bonded to, the least recently used first. Empty if the adapter is not
    /// open.
    public func bonds() async -> [BondInformation] {
        guard let open = shared.open else { return [] }
        return await open.host.bondInformation()
    }

    /// Removes a bond and ends the device's links.
    ///
    /// - Parameter identity: the device's identity address, as ``bonds()`` returns it.
    /// - Returns: whether the bond existed.
    @discardableResult
    public func removeBond(_ identity: DeviceAddress) async -> Bool {
        guard let open = shared.open else {
            reportClosed()
            return false
        }
        return await open.host.removeBond(identity)
    }

    /// Marks a bond as privileged, or removes the mark. A privileged bond stays when there are too many bonds; others
    /// may be evicted, the least recently used one first.
    ///
    /// - Parameters:
    ///   - isPrivileged: whether the bond is privileged from now on.
    ///   - identity: the device's identity address, as ``bonds()`` returns it.
    /// - Returns: whether the bond exists.
    @discardableResult
    public func setBondPrivileged(_ isPrivileged: Bool, for identity: DeviceAddress) async -> Bool {
        guard let open = shared.open else {
            reportClosed()
            return false
        }
        return await open.host.setBondPrivileged(isPrivileged, identity)
    }

    /// Makes data for the peer to receive by another way than the link, and the secret that belongs to the data
    /// (Vol 3, Part H, 2.3.5.6.4).
    ///
    /// The app sets the secret with `SecurityPolicy.ownOutOfBandData`, and the data that it has received from the peer
    /// with `SecurityPolicy.peerOutOfBandData`. Both are for one pairing, to which the delegate must consent:
    ///
    ///     guard let data = await security.makeOutOfBandData() else { return }
    ///     var policy = SecurityPolicy()
    ///     policy.ownOutOfBandData = data.secret
    ///     security.setPolicy(policy)
    ///     show(data.forPeer)
    ///
    /// - Parameter isSecureConnections: whether for LE Secure Connections, or a temporary key for LE legacy pairing.
    /// - Returns: nil if no manager has the adapter open.
    public func makeOutOfBandData(
        isSecureConnections: Bool = true
    ) async -> (secret: CBOwnOutOfBandData, forPeer: CBOutOfBandData)? {
        guard let open = shared.open else {
            reportClosed()
            return nil
        }
        return await open.host.makeOutOfBandData(isSecureConnections: isSecureConnections)
    }
}

/// An event of an adapter; see ``CBCentralManager/Linux/adapterEvents``.
public typealias CBAdapterEvent = HostEvent
/// An event of the security of links, or of bonds; see ``CBSecurity/events``.
public typealias CBSecurityEvent = SecurityEvent
/// The reason why a pairing or an encryption has failed.
public typealias CBSecurityError = SecurityError
/// The result of a pairing.
public typealias CBPairingResult = PairingResult
/// A change of a passkey while a person types it; see ``CBSecurity/reportKeypress(_:for:)``.
public typealias CBKeypress = KeypressNotification.Kind
/// The secret that belongs to out-of-band data of this host; see
/// ``CBSecurity/makeOutOfBandData(isSecureConnections:)``.
public typealias CBOwnOutOfBandData = OwnOutOfBandData
/// Data that one device sends to another by another way than the link, for example as a QR code.
public typealias CBOutOfBandData = OutOfBandData

extension CBCentralManager.Linux {
    /// The security of the manager's host; nil if there is no adapter.
    public var security: CBSecurity? { (manager.backend as? any HostMember).map { CBSecurity(shared: $0.shared) } }

    /// The events of the manager's adapter, from now on.
    ///
    /// The first event is `HostEvent.stateUnavailable` if the saved state could not be used as found, or if changes
    /// could not be saved. Bonds may then be missing, and peers may not know this host under its new identity. The
    /// event also occurs later, when a change cannot be saved. The last event is `HostEvent.closed`: the last manager
    /// on the adapter was released, or the app has closed the adapter that it opened. If the adapter cannot be opened,
    /// no event arrives; the managers' states report the failure.
    ///
    /// Each use creates a new sequence. It holds up to 256 events for a slow reader. If more arrive, the oldest are
    /// dropped, and `HostEvent.eventsDropped` counts them in their place.
    ///
    /// A task that uses the manager to create the sequence keeps the manager, so the sequence does not end. Create it
    /// outside:
    ///
    ///     let events = manager.linux.adapterEvents
    ///     Task { for await event in events { print(event) } }
    public var adapterEvents: Events<CBAdapterEvent> {
        ((manager.backend as? any HostMember)?.shared.events ?? HostEvents()).adapterEvents()
    }
}

extension CBPeripheralManager.Linux {
    /// The security of the manager's host; nil if there is no adapter.
    public var security: CBSecurity? { (manager.backend as? any HostMember).map { CBSecurity(shared: $0.shared) } }

    /// The events of the manager's adapter, from now on; see ``CBCentralManager/Linux/adapterEvents``.
    public var adapterEvents: Events<CBAdapterEvent> {
        ((manager.backend as? any HostMember)?.shared.events ?? HostEvents()).adapterEvents()
    }
}
