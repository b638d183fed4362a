import Glibc

extension AdapterSpecification {
    /// The environment variable that names the adapter if the program's user does not name one.
    public static let environmentVariable = "BLE_ADAPTER"

    /// The adapter that the environment's `BLE_ADAPTER` names, or else hci0 if it exists.
    ///
    /// - Throws: ``TransportError/invalidSpecification(_:)`` if the variable's value cannot be parsed,
    ///   ``TransportError/noAdapter`` if no adapter is named and hci0 does not exist.
    public static func `default`() throws(TransportError) -> AdapterSpecification {
        let environment = unsafe getenv(environmentVariable).map { unsafe String(cString: $0) }
        return try resolve(nil, environment: environment) {
            AdapterInventory.read().adapters.contains { $0.index == 0 }
        }
    }

    /// Returns the adapter that `argument` names, or else the adapter in `environment`, or else hci0 if it exists.
    ///
    /// - Parameters:
    ///   - argument: the adapter named by the program's user; ignored if nil or empty.
    ///   - environment: the value of ``environmentVariable``; ignored if nil or empty.
    ///   - hasAdapterZero: whether the kernel has hci0.
    /// - Throws: ``TransportError/invalidSpecification(_:)`` or ``TransportError/noAdapter``.
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
