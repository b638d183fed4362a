import BluetoothHost

extension Adapter {
    /// Sets the security policy for new pairings and operations. Pairings under way keep the policy that they began
    /// with.
    public func setSecurityPolicy(_ policy: SecurityPolicy) async {
        await host.setSecurityPolicy(policy)
    }

    /// Sets the delegate that answers questions about pairings from now on; nil for none.
    public func setPairingDelegate(_ delegate: (any PairingDelegate)?) async {
        await host.setPairingHandler(delegate?.handler(on: host.loop.appTaskExecutor))
    }

    /// Sends a keypress notification to a peer while ``/BLESMP/PairingQuestion/enterPasskey`` is open (Vol 3, Part H,
    /// 3.5.8). The peer's own arrive as ``/BluetoothHost/SecurityEvent/keyPressed(_:peer:_:)``.
    ///
    /// - Parameters:
    ///   - kind: the change of the passkey; the digit itself is never sent.
    ///   - inquiry: the inquiry that asks for the passkey.
    /// - Returns: false if nothing was sent: no passkey is asked for on the inquiry's link, or
    ///   ``/BluetoothHost/SecurityPolicy/usesKeypressNotifications`` is not set on both sides.
    @discardableResult
    public func reportKeypress(_ kind: Keypress, for inquiry: PairingInquiry) async -> Bool {
        await host.reportKeypress(kind, on: inquiry.link)
    }

    /// Lets peers begin pairings from now on, if the policy is ``/BluetoothHost/SecurityPolicy/Pairable/duringWindow``.
    /// An app calls it when a person has pressed a button, for example. It replaces an open window.
    ///
    /// - Parameter duration: how long peers may begin; pairings under way at the end continue.
    public func openPairingWindow(for duration: Duration) async {
        await host.openPairingWindow(for: duration)
    }

    /// Ends the pairing window. Pairings under way continue.
    public func closePairingWindow() async {
        await host.closePairingWindow()
    }

    // MARK: Bonds

    /// The devices that this one is bonded to, the most recently used one last.
    public func bonds() async -> [BondInformation] {
        await host.bondInformation()
    }

    /// Forgets a bonded device; a link to it ends.
    ///
    /// The call returns once the removal is on the disk, if bonds are saved. If it could not be saved,
    /// ``securityEvents()`` has ``/BluetoothHost/SecurityEvent/bondsNotSaved``.
    ///
    /// - Parameter identity: the device's identity address, as ``bonds()`` gives it.
    /// - Returns: whether there was such a bond.
    @discardableResult
    public func removeBond(_ identity: DeviceAddress) async -> Bool {
        await host.removeBond(identity)
    }

    /// Drops the saved cache of a bonded device's attribute database, so that the services are discovered again (Vol 3,
    /// Part G, 2.5.2). Other devices have no cache that outlives the link.
    ///
    /// - Parameter identity: the device's identity address, as ``bonds()`` gives it.
    /// - Returns: whether there is such a bond.
    @discardableResult
    public func discardDatabaseCache(of identity: DeviceAddress) async -> Bool {
        await host.discardDatabaseCache(of: identity)
    }

    /// Marks a bond as privileged, or removes the mark. A privileged bond stays when there are too many bonds
    /// (``Configuration/bondLimit``); others may be evicted, the least recently used one first.
    ///
    /// - Parameters:
    ///   - isPrivileged: whether the bond is privileged from now on.
    ///   - identity: the device's identity address, as ``bonds()`` gives it.
    /// - Returns: whether there is such a bond.
    @discardableResult
    public func setBondPrivileged(_ isPrivileged: Bool, for identity: DeviceAddress) async -> Bool {
        await host.setBondPrivileged(isPrivileged, identity)
    }

    // MARK: Out of band

    /// Makes data for the peer to receive by another way than the link, and the secret that belongs to the data.
    ///
    /// The secret goes into ``/BluetoothHost/SecurityPolicy/ownOutOfBandData`` and is valid for one pairing.
    ///
    /// - Parameter isSecureConnections: whether for LE Secure Connections, or a temporary key for LE legacy pairing.
    public func makeOutOfBandData(
        isSecureConnections: Bool = true
    ) async -> (secret: OwnOutOfBandData, forPeer: OutOfBandData) {
        await host.makeOutOfBandData(isSecureConnections: isSecureConnections)
    }

    // MARK: Events

    /// Returns the events of links' security and of bonds from now on. Each call returns a separate sequence, which
    /// ends when the adapter is closed.
    public func securityEvents() async -> Events<SecurityEvent> {
        let buffer = AsyncEventBuffer<SecurityEvent, Never>(limit: 4096, report: .element { .eventsDropped($0) })
        return Events(buffer: buffer, registration: await host.register(buffer))
    }
}

extension BluetoothHost {
    fileprivate func register(_ buffer: AsyncEventBuffer<SecurityEvent, Never>) -> Registration {
        let observer = observeSecurity { buffer.append($0) }
        let closeObserver = observe { event in
            if case .closed = event { buffer.finish() }
        }
        return registration(of: [observer, closeObserver])
    }

    /// Returns a registration that removes observers of the host when it ends.
    func registration(of observers: [UInt64]) -> Registration {
        Registration { [self] in
            cleanUp { host in
                for observer in observers { host.removeObserver(observer) }
            }
        }
    }
}
