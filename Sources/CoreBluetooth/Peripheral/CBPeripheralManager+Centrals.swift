import BLEATT
import BLEGATT
import BluetoothHost
import BluetoothTypes
import Foundation

// The connected centrals and the subscriptions of each link. Used on the manager's queue.
//
// Subscriptions belong to links. A central that reconnects before its former link has timed out is on two links. When
// it subscribes on the second link, the app receives `didUnsubscribeFrom` and `didSubscribeTo`. The end of the former
// link then changes nothing.
extension CBPeripheralManager {
    /// Returns the app's object for the central on a link, or a new one.
    func central(_ remote: RemoteCentral) -> CBCentral {
        content.withLock { content in
            content.remotes[remote.link] = remote
            return content.central(remote.identifier)
        }
    }

    func connected(_ remote: RemoteCentral) {
        let isNew = content.withLock { !$0.isConnected(remote.identifier) }
        let central = central(remote)
        if isNew { centralChanges.send(CBCentralChange(central: central, isConnected: true)) }
    }

    func disconnected(_ remote: RemoteCentral) {
        let (central, characteristics, isGone) = content.withLock { content in
            content.remotes[remote.link] = nil
            let isGone = !content.isConnected(remote.identifier)
            return (content.central(remote.identifier), content.database.allCharacteristics, isGone)
        }
        for characteristic in characteristics { unsubscribe(remote.link, from: characteristic) }
        if isGone { centralChanges.send(CBCentralChange(central: central, isConnected: false)) }
    }

    /// Replaces the central on a link by another one. The link's subscriptions move to the other central's object.
    func identified(_ remote: RemoteCentral, before: UUID) {
        let (former, isNew, isGone, characteristics) = content.withLock { content in
            let isNew = !content.isConnected(remote.identifier)
            content.remotes[remote.link] = remote
            return (
                content.central(before), isNew, !content.isConnected(before), content.database.allCharacteristics
            )
        }
        let subscribed = characteristics.filter { unsubscribe(remote.link, from: $0) }
        if isGone { centralChanges.send(CBCentralChange(central: former, isConnected: false)) }
        let central = central(remote)
        if isNew { centralChanges.send(CBCentralChange(central: central, isConnected: true)) }
        for characteristic in subscribed { subscribe(remote.link, central, to: characteristic) }
    }

    // MARK: Subscriptions

    func configured(
        _ link: LinkIdentifier,
        _ central: CBCentral,
        _ handle: AttributeHandle,
        _ configuration: ClientConfiguration
    ) {
        guard let characteristic = content.withLock({ $0.database.characteristic(at: handle) }) else { return }
        if configuration.isEmpty {
            unsubscribe(link, from: characteristic)
        } else {
            subscribe(link, central, to: characteristic)
        }
    }

    private func subscribe(_ link: LinkIdentifier, _ central: CBCentral, to characteristic: CBMutableCharacteristic) {
        guard !characteristic.subscriptions.contains(where: { $0.link == link }) else { return }
        let former = characteristic.removeSubscriptions(of: central)
        if !former.isEmpty {
            delegate?.peripheralManager(self, central: central, didUnsubscribeFrom: characteristic)
        }
        characteristic.addSubscriptions(former + [.init(link: link, central: central)])
        delegate?.peripheralManager(self, central: central, didSubscribeTo: characteristic)
    }

    /// Removes the subscription of a link. The delegate is called if the central has no other subscribed link.
    ///
    /// - Returns: whether the link was subscribed.
    @discardableResult
    private func unsubscribe(_ link: LinkIdentifier, from characteristic: CBMutableCharacteristic) -> Bool {
        guard let central = characteristic.removeSubscription(of: link) else { return false }
        if !characteristic.subscriptions.contains(where: { $0.central == central }) {
            delegate?.peripheralManager(self, central: central, didUnsubscribeFrom: characteristic)
        }
        return true
    }
}

extension CBPeripheralManager.Content {
    /// Whether a central has a link.
    fileprivate func isConnected(_ central: UUID) -> Bool {
        remotes.values.contains { $0.identifier == central }
    }

    /// Returns the object for a central, with the smallest ATT_MTU of its links.
    fileprivate mutating func central(_ identifier: UUID) -> CBCentral {
        let mtu = remotes.values.lazy.filter { $0.identifier == identifier }.map(\.mtu).min() ?? Bearer.defaultMTU
        if let kept = centrals[identifier]?.object {
            kept.setMTU(mtu)
            return kept
        }
        if centrals.count >= sweepSize {
            centrals = centrals.filter { $0.value.object != nil }
            sweepSize = max(64, 2 * centrals.count)
        }
        let central = CBCentral(identifier: identifier, mtu: mtu)
        centrals[identifier] = Weak(central)
        return central
    }
}
