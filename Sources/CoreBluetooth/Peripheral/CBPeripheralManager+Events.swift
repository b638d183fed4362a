import ATT
import BluetoothTypes
import Foundation
import GATT

// What the host says, on its way to the delegate. Objects change on the delivery queue, just before the delegate is called.
extension CBPeripheralManager {
    func start() {
        guard let engine else {
            Misuse.note("this process has no Bluetooth host: \(self) stays unsupported")
            return onQueue { $0.handle(.stateChanged(.unsupported)) }
        }
        engine.start { [weak self] event in self?.onQueue { $0.handle(event) } }
    }

    private func handle(_ event: PeripheralEvent) {
        switch event {
        case .restored(let restored):
            delegate?.peripheralManager(self, willRestoreState: restored.dictionary)
        case .stateChanged(let state): stateChanged(to: state)
        case .access(let remote, let request): accessed(by: central(remote), request)
        case .configured(let remote, let handle, let configuration):
            configured(central(remote), handle, configuration)
        case .mtuChanged(let remote): _ = central(remote)
        case .connected(let remote): centralChanges.send(CBCentralChange(central: central(remote), isConnected: true))
        case .disconnected(let identifier):
            disconnected(identifier)
            let gone = central(RemoteCentral(identifier: identifier, mtu: 23))
            centralChanges.send(CBCentralChange(central: gone, isConnected: false))
        case .channelOpened(let remote, let psm, let result):
            let peer = central(remote)
            let channel = (try? result.get()).map { CBL2CAPChannel(peer: peer, psm: psm, streams: $0) }
            delegate?.peripheralManager(self, didOpen: channel, error: result.error)
        }
    }

    // MARK: State

    private func stateChanged(to state: CBManagerState) {
        let before = setState(state)
        guard before != state else { return }
        if before == .poweredOn { forgetConnections(andServices: state != .poweredOff) }
        states.send(state)
        delegate?.peripheralManagerDidUpdateState(self)
    }

    /// Bluetooth is off, or worse: the advertisement and the connections are gone; and so, below `poweredOff`, are the
    /// services.
    private func forgetConnections(andServices forgetsServices: Bool) {
        let characteristics = content.withLock { content in
            content.advertising = .off
            content.session += 1
            content.updatesInFlight = 0
            content.owesReadiness = false
            return content.database.allCharacteristics
        }
        for characteristic in characteristics { characteristic.content.withLock { $0.subscribedCentrals = [] } }
        if forgetsServices { removePublishedServices() }
    }

    func removePublishedServices() {
        let handles = content.withLock { content in
            defer { content.database.removeAll() }
            return content.database.handles
        }
        for handle in handles.reversed() { engine?.removeService(at: handle) }
    }

    // MARK: Answers to commands

    func startedAdvertising(_ result: Result<Void, EngineError>, _ advertisement: UInt64) {
        let isCurrent = content.withLock { content in
            guard content.advertising == .starting, content.advertisement == advertisement else { return false }
            content.advertising = if case .success = result { .on } else { .off }
            return true
        }
        if isCurrent { delegate?.peripheralManagerDidStartAdvertising(self, error: result.error) }
    }

    func published(_ service: CBMutableService, _ result: Result<PublishedService, EngineError>) {
        switch result {
        case .success(let published):
            guard content.withLock({ $0.database.publish(service, published) }) else {
                engine?.removeService(at: published.handle)
                return
            }
        case .failure: content.withLock { $0.database.remove(service) }
        }
        delegate?.peripheralManager(self, didAdd: service, error: result.error)
    }

    func updateHasLeft(_ session: UInt64) {
        let isReady = content.withLock { content in
            guard content.session == session else { return false }
            content.updatesInFlight -= 1
            guard content.owesReadiness, content.updatesInFlight < CBPeripheralManager.updateLimit else { return false }
            content.owesReadiness = false
            return true
        }
        if isReady { delegate?.peripheralManagerIsReady(toUpdateSubscribers: self) }
    }

    // MARK: Centrals

    /// The object for a central: the one that is kept, or a new one.
    private func central(_ remote: RemoteCentral) -> CBCentral {
        content.withLock { content in
            if let kept = content.centrals[remote.identifier]?.object {
                kept.setMTU(remote.mtu)
                return kept
            }
            content.centrals = content.centrals.filter { $0.value.object != nil }
            let central = CBCentral(identifier: remote.identifier, mtu: remote.mtu)
            content.centrals[remote.identifier] = Weak(central)
            return central
        }
    }

    private func configured(_ central: CBCentral, _ handle: AttributeHandle, _ configuration: ClientConfiguration) {
        guard let characteristic = content.withLock({ $0.database.characteristic(at: handle) }),
            characteristic.setSubscribed(!configuration.isEmpty, central)
        else { return }
        if configuration.isEmpty {
            delegate?.peripheralManager(self, central: central, didUnsubscribeFrom: characteristic)
        } else {
            delegate?.peripheralManager(self, central: central, didSubscribeTo: characteristic)
        }
    }

    /// Who is gone subscribes to nothing.
    private func disconnected(_ identifier: UUID) {
        let (kept, characteristics) = content.withLock {
            ($0.centrals[identifier]?.object, $0.database.allCharacteristics)
        }
        guard let central = kept else { return }
        for characteristic in characteristics where characteristic.setSubscribed(false, central) {
            delegate?.peripheralManager(self, central: central, didUnsubscribeFrom: characteristic)
        }
    }

    private func accessed(by central: CBCentral, _ request: AccessRequest) {
        let access = CBATTRequest.Access(identifier: request.identifier, kind: request.kind.access)
        let writes: [AttributeWrite]
        switch request.kind {
        case .read(let handle, let offset):
            guard let delegate, let characteristic = content.withLock({ $0.database.characteristic(at: handle) }) else {
                return refuse(request, of: central)
            }
            let request = CBATTRequest(
                central: central,
                characteristic: characteristic,
                offset: offset,
                value: nil,
                access: access
            )
            return delegate.peripheralManager(self, didReceiveRead: request)
        case .write(let write, _): writes = [write]
        case .execute(let parts): writes = AttributeWrite.joined(parts)
        }
        let requests = content.withLock { content in
            writes.compactMap { write in
                content.database.characteristic(at: write.handle).map { characteristic in
                    CBATTRequest(
                        central: central,
                        characteristic: characteristic,
                        offset: write.offset,
                        value: Data(write.value),
                        access: access
                    )
                }
            }
        }
        guard let delegate, requests.count == writes.count, !requests.isEmpty else {
            return refuse(request, of: central)
        }
        delegate.peripheralManager(self, didReceiveWrite: requests)
    }

    /// Answers what there is nobody to answer for.
    private func refuse(_ request: AccessRequest, of central: CBCentral) {
        if request.kind.access == .command { return }
        engine?.answer(request.identifier, of: central.identifier, .failure(.unlikelyError))
    }
}

extension AccessRequest.Kind {
    fileprivate var access: CBATTRequest.Access.Kind {
        switch self {
        case .read: .read
        case .write(_, let isCommand): isCommand ? .command : .write
        case .execute: .write
        }
    }
}

extension AttributeWrite {
    /// Writes with those that go on where the one before them ends made one with it.
    static func joined(_ parts: [AttributeWrite]) -> [AttributeWrite] {
        var joined: [AttributeWrite] = []
        for part in parts {
            if let last = joined.last, last.handle == part.handle, last.offset + last.value.count == part.offset {
                joined[joined.count - 1] = AttributeWrite(
                    handle: last.handle,
                    offset: last.offset,
                    value: last.value + part.value
                )
            } else {
                joined.append(part)
            }
        }
        return joined
    }
}

extension RestoredPeripheral {
    fileprivate var dictionary: [String: Any] {
        var advertisement: [String: Any] = [:]
        if let localName { advertisement[CBAdvertisementDataLocalNameKey] = localName }
        if let services { advertisement[CBAdvertisementDataServiceUUIDsKey] = services.map(CBUUID.init) }
        return advertisement.isEmpty ? [:] : [CBPeripheralManagerRestoredStateAdvertisementDataKey: advertisement]
    }
}
