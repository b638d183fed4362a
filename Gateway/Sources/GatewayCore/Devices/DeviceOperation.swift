import ESPHomeProtocol

/// An operation that a client requests on a connected device.
enum DeviceOperation: Hashable, Sendable {
    case getServices
    case read(UInt16)
    case write(UInt16, [UInt8], withResponse: Bool)
    case notify(UInt16, isEnabled: Bool)
    case pair
    case unpair
    case clearCache
    case setParameters(RequestedConnectionParameters)
    case disconnect

    /// Whether the operation needs a link. The others change only what the gateway has saved about the device.
    var needsLink: Bool {
        switch self {
        case .unpair, .clearCache: false
        case .getServices, .read, .write, .notify, .pair, .setParameters, .disconnect: true
        }
    }

    /// The message if the operation cannot begin; nil if none is expected.
    func failure(_ address: UInt64, _ error: Int32 = ClientErrorCode.notConnected) -> Message? {
        return switch self {
        case .getServices: .failure(address, handle: 0, error: error)
        case .read(let handle), .write(let handle, _, withResponse: true), .notify(let handle, isEnabled: true):
            .failure(address, handle: handle, error: error)
        case .write(_, _, withResponse: false), .notify(_, isEnabled: false): nil
        case .pair: .pairing(address, error: error)
        case .unpair: .unpairing(address, error: error)
        case .clearCache: .cacheCleared(address, error: error)
        case .setParameters: .parametersSet(address, error: error)
        case .disconnect: .disconnected(address, error: ClientErrorCode.noConnection)
        }
    }
}
