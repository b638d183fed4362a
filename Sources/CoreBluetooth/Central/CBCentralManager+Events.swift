import BluetoothTypes
import Foundation

// The host's events, on their way to the delegate. Objects change on the delivery queue, just before the delegate is
// called.
extension CBCentralManager: EventReceiver {
    func hasRoom(before event: CentralEvent) {
        if case .discovered = event { backend?.reportDroppedDiscoveries() }
    }

    func handle(_ event: CentralEvent) {
        switch event {
        case .restored(let restored):
            delegate?.centralManager(self, willRestoreState: dictionary(restored))
        case .stateChanged(let state): stateChanged(to: state)
        case .discovered(let discovery): discovered(discovery)
        case .connected(let connection, let mtu, let link):
            guard let peripheral = kept(connection.peripheral),
                let answered = peripheral.connectionMade(connection, mtu: mtu, on: link)
            else { return }
            delegate?.centralManager(self, didConnect: peripheral)
            send(.connected, of: peripheral, answering: answered)
        case .connectionFailed(let connection, let error):
            let peripheral = kept(connection.peripheral)
            let answered = peripheral?.connectionFailed(connection)
            // From now on the app cannot cancel the connection. The backend answers an earlier cancellation before
            // the release.
            backend?.release(connection)
            guard let peripheral, let answered else { return }
            delegate?.centralManager(self, didFailToConnect: peripheral, error: error?.error)
            send(.failed(error?.error), of: peripheral, answering: answered)
        case .disconnected(let connection, let disconnection):
            if let peripheral = kept(connection.peripheral) { disconnected(connection, peripheral, disconnection) }
        case .connectionEvent(let known, let event):
            delegate?.centralManager(self, connectionEventDidOccur: event, for: named(known))
        case .mtuChanged(let identifier, let mtu): kept(identifier)?.setMTU(mtu)
        case .nameChanged(let identifier, let name):
            if let peripheral = kept(identifier) { take(name, of: peripheral) }
        case .servicesChanged(let identifier, let range, let number):
            connected(identifier)?.servicesChanged(in: range, number: number)
        case .valueReceived(let identifier, let handle, let value):
            connected(identifier)?.received(value, of: handle)
        }
    }

    func reportState() {
        delegate?.centralManagerDidUpdateState(self)
    }

    /// Discards the scan and the connections. Below `poweredOff`, discards the peripherals too.
    ///
    /// The host has ended those that existed before it lost the controller. The backend ends those that the app has
    /// begun since then, while the state of the manager was still `poweredOn`.
    func discardConnections(for state: CBManagerState) {
        let forgetsPeripherals = state != .poweredOff
        let peripherals = content.withLock { content in
            if content.scan != nil { backend?.stopScan() }
            content.scan = nil
            defer { if forgetsPeripherals { content.peripherals.removeAll() } }
            return content.peripherals.values.compactMap(\.object)
        }
        for peripheral in peripherals {
            guard let answered = peripheral.discardConnection(isInvalidated: forgetsPeripherals) else { continue }
            let end = CBConnectionChange.Kind.disconnected(CBError.described(.notConnected), isReconnecting: false)
            send(end, of: peripheral, answering: answered)
        }
    }

    private func discovered(_ discovery: Discovery) {
        guard content.withLock({ $0.scan == discovery.scanNumber }) else { return }
        let known = KnownPeripheral(identifier: discovery.identifier, name: discovery.name, hold: discovery.hold)
        let peripheral = named(known)
        delegate?.centralManager(
            self,
            didDiscover: peripheral,
            advertisementData: discovery.dictionary,
            rssi: Discovery.number(ofRSSI: discovery.rssi)
        )
        discoveries.send(CBDiscovery(peripheral: peripheral, discovery))
    }

    /// Returns the object for a peripheral. An object that the app keeps gets the name that the host knows now.
    private func named(_ known: KnownPeripheral) -> CBPeripheral {
        let peripheral = peripheral(known)
        if let name = known.name { take(name, of: peripheral) }
        return peripheral
    }

    private func take(_ name: String?, of peripheral: CBPeripheral) {
        if peripheral.setName(name) { peripheral.tell { $0.peripheralDidUpdateName(peripheral) } }
    }

    private func disconnected(
        _ connection: ConnectionIdentifier,
        _ peripheral: CBPeripheral,
        _ disconnection: Disconnection
    ) {
        guard peripheral.awaitsEnd(of: connection, isReconnecting: disconnection.isReconnecting) else { return }
        let answered = peripheral.connectionEnded(isReconnecting: disconnection.isReconnecting)
        report(disconnection, of: peripheral, answering: answered)
        peripheral.beginNextConnection()
    }

    /// Reports the end of a connection to the app. Called on the delivery queue.
    ///
    /// - Parameter answered: the number of the app's requests to connect that the end answers.
    func report(_ disconnection: Disconnection, of peripheral: CBPeripheral, answering answered: UInt64) {
        delegate?.centralManager(
            self,
            didDisconnectPeripheral: peripheral,
            timestamp: disconnection.time,
            isReconnecting: disconnection.isReconnecting,
            error: disconnection.error?.error
        )
        send(
            .disconnected(disconnection.error?.error, isReconnecting: disconnection.isReconnecting),
            of: peripheral,
            answering: answered
        )
    }

    /// Sends a change of a connection to the sequences of changes. Called on the delivery queue.
    ///
    /// - Parameter answered: the number of the app's requests to connect that the change answers.
    func send(_ kind: CBConnectionChange.Kind, of peripheral: CBPeripheral, answering answered: UInt64) {
        connectionChanges.send(CBConnectionChange(peripheral: peripheral, kind: kind, answeredRequests: answered))
    }

    private func dictionary(_ restored: RestoredCentral) -> [String: Any] {
        var dictionary: [String: Any] = [:]
        if !restored.peripherals.isEmpty {
            dictionary[CBCentralManagerRestoredStatePeripheralsKey] = restored.peripherals.map(named)
        }
        if let scan = restored.scan {
            dictionary[CBCentralManagerRestoredStateScanServicesKey] = scan.services.map(CBUUID.init)
            dictionary[CBCentralManagerRestoredStateScanOptionsKey] = scan.options
        }
        return dictionary
    }

    /// Returns the object for a peripheral, if the app keeps one.
    private func kept(_ identifier: UUID) -> CBPeripheral? {
        content.withLock { $0.peripherals[identifier]?.object }
    }

    private func connected(_ identifier: UUID) -> CBPeripheral? {
        kept(identifier).flatMap { $0.state == .connected ? $0 : nil }
    }
}
