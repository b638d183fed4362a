import BLE
import BluetoothHost
import BluetoothTypes
import Foundation

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
    /// An `Adapter` that the app has opened and given to a manager keeps its own delegate until this is called.
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
    /// open is replaced; a duration of zero ends it.
    public func openPairingWindow(for duration: Duration) {
        post { host, _ in host.openPairingWindow(for: duration) }
    }

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

extension CBCentralManager.Linux {
    /// How the manager's host pairs; nil where there is no adapter.
    public var security: CBSecurity? { (manager.engine as? any HostMember).map { CBSecurity(shared: $0.shared) } }
}

extension CBPeripheralManager.Linux {
    /// How the manager's host pairs; nil where there is no adapter.
    public var security: CBSecurity? { (manager.engine as? any HostMember).map { CBSecurity(shared: $0.shared) } }
}
