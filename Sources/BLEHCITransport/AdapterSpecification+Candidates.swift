import BluetoothTypes

extension AdapterSpecification {
    /// Returns the kernel's adapters to which the specification refers, the preferred first.
    ///
    /// - ``hci(index:channel:)`` refers to the adapter with this number.
    /// - ``address(_:channel:)`` refers to each adapter with this address: usually one.
    /// - ``automatic`` refers to each adapter that could be free, in the order of their numbers: first those that are
    ///   down, then those that are up. It refers to no adapter that rfkill blocks, and to none that is up while
    ///   bluetoothd runs, because bluetoothd uses it then. Only opening shows whether another program uses an adapter.
    ///
    /// - Returns: the adapters; none if the specification refers to no adapter of the kernel.
    /// - Throws: an error with one line that names the adapters that exist: ``TransportError/noSuchAdapter(index:)``,
    ///   ``TransportError/noAdapterWithAddress(_:present:)``, ``TransportError/noFreeAdapter(present:)``,
    ///   ``TransportError/noAdapter``, or the reason why the kernel has no HCI socket.
    public func candidates(in inventory: AdapterInventory) throws(TransportError) -> [KernelAdapter] {
        let found: [KernelAdapter]
        switch self {
        case .hci(let index, _):
            found = inventory.adapters.filter { $0.index == index }
            if found.isEmpty { throw inventory.socketError ?? .noSuchAdapter(index: index) }
        case .address(let address, _):
            found = inventory.adapters.filter { $0.address?.value == address.value }
            if found.isEmpty {
                throw inventory.socketError ?? .noAdapterWithAddress(address, present: inventory.addresses)
            }
        case .automatic:
            let free = inventory.adapters.filter { inventory.obstacle(to: $0) == nil }
            found = free.filter { !$0.isUp } + free.filter(\.isUp)
            if found.isEmpty { throw inventory.socketError ?? inventory.noneIsFree }
        case .unix, .seqpacket, .tcp, .serial, .virtual: found = []
        }
        return found
    }
}

extension AdapterInventory {
    /// The adapters with their addresses, for an error.
    fileprivate var addresses: String {
        adapters.map { "\($0.name) (\($0.address?.description ?? "address unknown"))" }.joined(separator: ", ")
    }

    fileprivate var noneIsFree: TransportError {
        guard !adapters.isEmpty else { return .noAdapter }
        let reasons = adapters.map { "\($0.name) is \(obstacle(to: $0) ?? "in use")" }
        return .noFreeAdapter(present: reasons.joined(separator: ", "))
    }

    /// The reason why the user channel of an adapter cannot be opened; nil if none is known.
    fileprivate func obstacle(to adapter: KernelAdapter) -> String? {
        if let block = adapter.radioBlock, block.bySoftware || block.byHardware { return "blocked by rfkill" }
        if adapter.isUp, let bluetoothDaemon { return "used by bluetoothd (process \(bluetoothDaemon))" }
        return nil
    }
}
