import Glibc

extension AdapterSpecification {
    /// The environment variable that names the adapter where a program's user has not.
    public static let environmentVariable = "BLE_ADAPTER"

    /// The adapter that the environment's `BLE_ADAPTER` names, else hci0 where there is one.
    ///
    /// - Throws: ``TransportError/invalidSpecification(_:)`` for a variable that cannot be read,
    ///   ``TransportError/noAdapter`` where there is nothing to choose.
    public static func `default`() throws(TransportError) -> AdapterSpecification {
        let environment = unsafe getenv(environmentVariable).map { unsafe String(cString: $0) }
        return try resolve(nil, environment: environment) {
            AdapterInventory.read().adapters.contains { $0.index == 0 }
        }
    }

    /// The adapter that `argument` names, else the one that `environment` names, else hci0 where there is one.
    ///
    /// - Parameters:
    ///   - argument: what the program's user has asked for; nothing when nil or empty.
    ///   - environment: the value of ``environmentVariable``; nothing when nil or empty.
    ///   - hasAdapterZero: whether the kernel has hci0.
    public static func resolve(
        _ argument: String?,
        environment: String?,
        hasAdapterZero: () -> Bool
    ) throws(TransportError) -> AdapterSpecification {
        for text in [argument, environment] {
            guard let text, !text.isEmpty else { continue }
            do throws(AdapterSpecificationError) {
                return try AdapterSpecification(parsing: text)
            } catch {
                throw .invalidSpecification(error)
            }
        }
        guard hasAdapterZero() else { throw .noAdapter }
        return .hci(index: 0, channel: .user)
    }
}
