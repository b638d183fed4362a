import BLE
import BluetoothHost
import BluetoothTypes
import Foundation
import SMP

/// How a manager's host pairs, and whom it is bonded to. Managers that share an adapter share this.
///
/// As with Apple's framework, an app need not know of it: what needs encryption is paired for when it is used. Without a
/// delegate, only just works is consented to, and only for a peer whose protected values an app here uses, or that uses an
/// app's here.
public struct CBSecurity: Sendable {
    let shared: SharedHost

    /// Sets the policy for peers' security from now on; see `SecurityPolicy`. Showing and typing is the delegate's part.
    public func setPolicy(_ policy: SecurityPolicy) {
        post { host, _ in host.setSecurityPolicy(policy) }
    }

    /// Sets the delegate that answers for a person when devices pair; nil where managers answer by themselves.
    ///
    /// The delegate is kept until another one is set, or the last manager on the adapter is released. A delegate that
    /// refers to a manager has to do so weakly: otherwise both are never released. An `Adapter` that
    /// the app has opened and given to a manager keeps its own delegate until this is called.
    public func setPairingDelegate(_ delegate: (any PairingDelegate)?) {
        post { host, open in open.setPairingDelegate(delegate, on: host) }
    }

    private func post(_ call: String = #function, _ action: @escaping SharedHost.Action) {
        if !shared.post(action) { reportClosed(call) }
    }

    private func reportClosed(_ call: String = #function) {
        ProgrammerError.report("\(call) has no effect: no manager has the adapter open")
    }

    /// Lets peers begin pairings for `duration`, where the policy is `SecurityPolicy.Pairable.duringWindow`. A window that is
    /// open is replaced.
    public func openPairingWindow(for duration: Duration) {
        post { host, _ in host.openPairingWindow(for: duration) }
    }

    /// Ends the pairing window. Pairings under way continue.
    public func closePairingWindow() {
        post { host, _ in host.closePairingWindow() }
    }

    /// Sends a keypress notification to a peer while `PairingQuestion.enterPasskey` is open (Vol 3, Part H, 3.5.8). The
    /// peer's own are in ``events``, as `SecurityEvent.keyPressed`.
    ///
    /// - Parameters:
    ///   - kind: what was done to the passkey; never which digit.
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

    /// What happens to the security of links, and to bonds, from now on.
    ///
    /// Each use makes a sequence of its own. It holds up to 4,096 events for a slow reader. If more arrive, the oldest
    /// are dropped, and `SecurityEvent.eventsDropped` counts them in their place. The sequence ends when the last
    /// manager on the adapter is released, or when the app closes the adapter that it has opened. If no manager uses the
    /// adapter, it ends at once. If the adapter cannot be opened, no event comes: the managers' states say so.
    public var events: Events<CBSecurityEvent> { shared.events.securityEvents() }

    /// The devices that this host is bonded to, the one that was met last at the end; none before it is powered on.
    public func bonds() async -> [BondInformation] {
        guard let open = shared.open else { return [] }
        return await open.host.bondInformation()
    }

    /// Forgets a bonded device; its links end.
    ///
    /// - Parameter identity: its identity address, as ``bonds()`` gives it.
    /// - Returns: whether there was such a bond.
    @discardableResult
    public func removeBond(_ identity: DeviceAddress) async -> Bool {
        guard let open = shared.open else {
            reportClosed()
            return false
        }
        return await open.host.removeBond(identity)
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

extension CBCentralManager.Linux {
    /// How the manager's host pairs; nil where there is no adapter.
    public var security: CBSecurity? { (manager.engine as? any HostMember).map { CBSecurity(shared: $0.shared) } }

    /// What happens to the manager's adapter from now on.
    ///
    /// If the saved state could not be used as it was found, or changes could not be saved, the first event is
    /// `HostEvent.stateUnavailable`. It also comes when a change cannot be saved later. If the adapter cannot be opened, no
    /// event comes: the managers' states say so. Bonds may be missing then, and peers may not know this host under its new
    /// identity. The last event is `HostEvent.closed`, when the last manager on the adapter is released, or when the
    /// app closes the adapter that it has opened.
    ///
    /// Each use makes a sequence of its own. It holds up to 256 events for a slow reader. If more arrive, the oldest
    /// are dropped, and `HostEvent.eventsDropped` counts them in their place.
    ///
    /// A task that uses the manager to make the sequence keeps the manager, so the sequence does not end. Make it outside:
    ///
    ///     let events = manager.linux.adapterEvents
    ///     Task { for await event in events { print(event) } }
    public var adapterEvents: Events<CBAdapterEvent> {
        ((manager.engine as? any HostMember)?.shared.events ?? HostEvents()).adapterEvents()
    }
}

extension CBPeripheralManager.Linux {
    /// How the manager's host pairs; nil where there is no adapter.
    public var security: CBSecurity? { (manager.engine as? any HostMember).map { CBSecurity(shared: $0.shared) } }

    /// What happens to the manager's adapter from now on; see ``CBCentralManager/Linux/adapterEvents``.
    public var adapterEvents: Events<CBAdapterEvent> {
        ((manager.engine as? any HostMember)?.shared.events ?? HostEvents()).adapterEvents()
    }
}
