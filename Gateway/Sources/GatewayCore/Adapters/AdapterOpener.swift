import BLE

/// Opens the adapter of a specification, and finds out which adapter of the kernel it is.
struct AdapterOpener: Sendable {
    /// An open adapter.
    struct Opened: Sendable {
        let adapter: Adapter
        /// The adapter of the kernel; nil for other controllers.
        var kernelAdapter: KernelAdapter?
    }

    let specification: AdapterSpecification
    let configuration: Adapter.Configuration
    let system: any AdapterSystem
    /// The specifications of the gateway's other adapters, which `auto` does not take.
    let others: [AdapterSpecification]

    /// - Parameter inventory: the adapters of the kernel.
    func open(in inventory: AdapterInventory) async throws(BLEError) -> Opened {
        guard specification == .automatic else {
            let adapter = try await system.open(specification, configuration)
            return Opened(adapter: adapter, kernelAdapter: kernelAdapter(of: adapter, in: inventory))
        }
        var configuration = configuration
        configuration.bringsAdapterDown = true
        var failure: BLEError?
        for candidate in try candidates(in: inventory) {
            do throws(BLEError) {
                let adapter = try await system.open(candidate.ownSpecification, configuration)
                return Opened(adapter: adapter, kernelAdapter: candidate)
            } catch {
                guard error != .cancelled else { throw error }
                failure = failure ?? error
            }
        }
        throw failure ?? .adapter(.noFreeAdapter(present: "the others in the settings have all there are"))
    }

    /// The adapters to which the specification refers, without those that others name.
    private func candidates(in inventory: AdapterInventory) throws(BLEError) -> [KernelAdapter] {
        do throws(TransportError) {
            return try specification.candidates(in: inventory).filter { candidate in
                !others.contains { $0.names(candidate) }
            }
        } catch {
            throw .adapter(error)
        }
    }

    /// The adapter of the kernel behind an open adapter.
    func kernelAdapter(of adapter: Adapter, in inventory: AdapterInventory) -> KernelAdapter? {
        guard case .hci(let index, _)? = adapter.controller else {
            return try? specification.candidates(in: inventory).first
        }
        if let found = inventory.adapters.first(where: { $0.index == index }) { return found }
        // The inventory is older than the adapter's number.
        var unlisted = KernelAdapter(index: index)
        if case .address(let address, _) = specification { unlisted.address = address }
        return unlisted
    }
}

extension KernelAdapter {
    /// The specification that still refers to this adapter when its number changes, if its address is known.
    fileprivate var ownSpecification: AdapterSpecification {
        address.map { .address($0, channel: .user) } ?? .hci(index: index, channel: .user)
    }
}
