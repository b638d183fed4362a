import BLEATT
import BLEGATT
import BluetoothHost
import BluetoothTypes
import Foundation

// The host's events, on their way to the delegate. Objects change on the delivery queue, just before the delegate is
// called.
extension CBPeripheralManager: EventReceiver {
    func handle(_ event: PeripheralEvent) {
        switch event {
        case .restored(let restored):
            delegate?.peripheralManager(self, willRestoreState: restored.dictionary)
        case .stateChanged(let state): stateChanged(to: state)
        case .access(let remote, let request): accessed(by: central(remote), on: remote.link, request)
        case .configured(let remote, let handle, let configuration):
            configured(remote.link, central(remote), handle, configuration)
        case .mtuChanged(let remote): _ = central(remote)
        case .connected(let remote): connected(remote)
        case .identified(let remote, let before): identified(remote, before: before)
        case .disconnected(let remote): disconnected(remote)
        case .channelOpened(let remote, let psm, let result):
            let peer = central(remote)
            let channel = (try? result.get()).map { CBL2CAPChannel(peer: peer, psm: psm, streams: $0) }
            delegate?.peripheralManager(self, didOpen: channel, error: result.error)
        }
    }

    // MARK: State

    func reportState() {
        delegate?.peripheralManagerDidUpdateState(self)
    }

    /// Discards the advertisement, the connections and the services for channels. Below `poweredOff`, discards the
    /// services too.
    ///
    /// The host has ended the advertisement that existed before it lost the controller. The backend ends one that
    /// the app has started since then, while the state of the manager was still `poweredOn`.
    func discardConnections(for state: CBManagerState) {
        let characteristics = content.withLock { content in
            if content.advertising != .off { backend?.stopAdvertising() }
            content.advertising = .off
            content.waitingStarts = []
            content.session += 1
            content.updatesInFlight = [:]
            content.refusedUpdates = []
            return content.database.allCharacteristics
        }
        for characteristic in characteristics { characteristic.content.withLock { $0.subscriptions = [] } }
        backend?.unpublishAllChannels()
        if state != .poweredOff { removePublishedServices() }
    }

    func removePublishedServices() {
        let handles = content.withLock { content in
            defer { content.database.removeAll() }
            return content.database.handles
        }
        for handle in handles.reversed() { backend?.removeService(at: handle) }
    }

    // MARK: Answers to commands

    /// Handles the result of a start of advertising, and the starts that have waited for it. After a failure the next
    /// one begins. After a success they all fail.
    func startedAdvertising(_ result: Result<Void, BackendError>, _ advertisement: UInt64) {
        var next: AdvertisementPayload?
        var waitingCount = 0
        let isCurrent = content.withLock { content in
            guard content.advertising == .starting, content.advertisement == advertisement else { return false }
            guard case .failure = result else {
                content.advertising = .on
                waitingCount = content.waitingStarts.count
                return true
            }
            content.advertising = .off
            if !content.waitingStarts.isEmpty {
                let payload = content.waitingStarts.removeFirst()
                next = payload
                // Before the report, in which the app may request another start.
                beginAdvertising(payload, &content)
            }
            return true
        }
        guard isCurrent else { return }
        delegate?.peripheralManagerDidStartAdvertising(self, error: result.error)
        if let next { noteOmittedServices(of: next) }
        // Starts that the app requests from now on are reported by jobs of their own.
        for _ in 0..<waitingCount where takeWaitingStart(during: advertisement) { reportAlreadyAdvertising() }
    }

    /// Removes the oldest start that waits to be reported.
    ///
    /// - Parameter advertisement: the advertisement that was starting or on when the app requested the start.
    /// - Returns: false if there is none, or if the app has stopped this advertisement in the meantime.
    func takeWaitingStart(during advertisement: UInt64) -> Bool {
        content.withLock { content in
            guard content.advertising == .on, content.advertisement == advertisement, !content.waitingStarts.isEmpty
            else { return false }
            content.waitingStarts.removeFirst()
            return true
        }
    }

    func reportAlreadyAdvertising() {
        delegate?.peripheralManagerDidStartAdvertising(self, error: CBError.described(.alreadyAdvertising))
    }

    func noteOmittedServices(of payload: AdvertisementPayload) {
        for service in payload.omittedServices { ProgrammerError.note("no room to advertise service \(service)") }
    }

    /// Handles the result of publishing the service in an entry of the database. If the app has removed the service in
    /// the meantime, the result is not reported.
    func published(
        _ service: CBMutableService,
        _ number: UInt64,
        _ result: Result<PublishedService, BackendError>
    ) {
        switch result {
        case .success(let published):
            guard content.withLock({ $0.database.publish(number, published) }) else {
                backend?.removeService(at: published.handle)
                return
            }
        case .failure:
            guard content.withLock({ $0.database.remove(number) }) else { return }
        }
        delegate?.peripheralManager(self, didAdd: service, error: result.error)
    }

    /// Handles that a value no longer waits for its links.
    func updateHasLeft(to links: [LinkIdentifier], _ session: UInt64) {
        let isReady = content.withLock { content in
            guard content.session == session else { return false }
            for link in links {
                let rest = content.updatesInFlight[link, default: 0] - 1
                content.updatesInFlight[link] = rest > 0 ? rest : nil
            }
            let refused = content.refusedUpdates
            content.refusedUpdates = refused.filter { !content.hasSpace(for: $0) }
            return content.refusedUpdates.count < refused.count
        }
        if isReady { delegate?.peripheralManagerIsReady(toUpdateSubscribers: self) }
    }

    // MARK: Requests

    private func accessed(by central: CBCentral, on link: LinkIdentifier, _ request: AccessRequest) {
        let access = CBATTRequest.Access(on: link, identifier: request.identifier, kind: request.kind.access)
        let writes: [AttributeWrite]
        switch request.kind {
        case .read(let handle, let offset):
            guard let delegate, let characteristic = content.withLock({ $0.database.characteristic(at: handle) }) else {
                return refuse(request, on: link)
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
            return refuse(request, on: link)
        }
        delegate.peripheralManager(self, didReceiveWrite: requests)
    }

    /// Answers an access for which there is no delegate or characteristic.
    private func refuse(_ request: AccessRequest, on link: LinkIdentifier) {
        if request.commandLength != nil { return }
        backend?.answer(request.identifier, on: link, .failure(.unlikelyError))
    }
}

extension CBPeripheralManager.Content {
    /// Whether fewer than ``CBPeripheralManager/updateLimit`` values wait for one of the links.
    func hasSpace(for links: some Sequence<LinkIdentifier>) -> Bool {
        links.contains { updatesInFlight[$0, default: 0] < CBPeripheralManager.updateLimit }
    }
}

extension AccessRequest {
    /// The length of the value in bytes, if the access is a command, which has no response.
    var commandLength: Int? {
        if case .write(let write, isCommand: true) = kind { write.value.count } else { nil }
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
    /// Joins each write with the writes that continue at its end.
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
