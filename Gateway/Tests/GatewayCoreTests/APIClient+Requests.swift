import ESPHomeMessages
import ESPHomeProtocol

extension APIClient {
    static func request(_ address: UInt64, _ type: ESPHomeBluetoothDeviceRequestType) -> ESPHomeBluetoothDeviceRequest {
        var request = ESPHomeBluetoothDeviceRequest()
        request.address = address
        request.requestType = type
        request.hasAddressType_p = true
        request.addressType = 1
        return request
    }

    /// Requests a connection and returns the outcome.
    func requestConnection(_ address: UInt64) async throws -> ESPHomeBluetoothDeviceConnectionResponse {
        try await send(.deviceRequest, Self.request(address, .connectV3WithoutCache))
        return try await connectionResponse { $0.address == address }
    }

    /// Connects to a device.
    func connect(_ address: UInt64) async throws {
        let response = try await requestConnection(address)
        guard response.connected, response.mtu > 23 else { throw NotConnected(error: response.error) }
    }

    /// Ends a connection, or an attempt.
    func disconnect(_ address: UInt64) async throws {
        try await send(.deviceRequest, Self.request(address, .disconnect))
        _ = try await connectionResponse { $0.address == address && !$0.connected }
    }

    /// Pairs with a device that is connected. Returns whether it has succeeded.
    func pair(_ address: UInt64) async throws -> Bool {
        try await send(.deviceRequest, Self.request(address, .pair))
        return try await next(.pairingResponse, as: ESPHomeBluetoothDevicePairingResponse.self).paired
    }

    /// Removes the bond with a device. Returns whether there was one.
    func unpair(_ address: UInt64) async throws -> Bool {
        try await send(.deviceRequest, Self.request(address, .unpair))
        return try await next(.unpairingResponse, as: ESPHomeBluetoothDeviceUnpairingResponse.self).success
    }

    struct NotConnected: Error {
        let error: Int32
    }

    func connectionResponse(
        where predicate: (ESPHomeBluetoothDeviceConnectionResponse) -> Bool
    ) async throws -> ESPHomeBluetoothDeviceConnectionResponse {
        try await next(.deviceConnectionResponse, as: ESPHomeBluetoothDeviceConnectionResponse.self, where: predicate)
    }

    /// Returns the messages until a device is connected, or until its connection has ended.
    func messages(untilConnected isConnected: Bool, _ address: UInt64) async throws -> [ESPHomeProtocol.Message] {
        try await messages { message in
            guard message.type == .deviceConnectionResponse else { return false }
            let response = try? message.decode(as: ESPHomeBluetoothDeviceConnectionResponse.self)
            return response?.address == address && response?.connected == isConnected
        }
    }

    func slots(
        where predicate: (ESPHomeBluetoothConnectionsFreeResponse) -> Bool
    ) async throws -> ESPHomeBluetoothConnectionsFreeResponse {
        try await next(.connectionsFreeResponse, as: ESPHomeBluetoothConnectionsFreeResponse.self, where: predicate)
    }

    func sendRead(_ address: UInt64, _ handle: UInt16) async throws {
        var request = ESPHomeBluetoothGATTReadRequest()
        request.address = address
        request.handle = UInt32(handle)
        try await send(.readRequest, request)
    }

    func read(_ address: UInt64, _ handle: UInt16) async throws -> [UInt8] {
        try await sendRead(address, handle)
        return Array(try await next(.readResponse, as: ESPHomeBluetoothGATTReadResponse.self).data)
    }

    func write(_ address: UInt64, _ handle: UInt16, _ value: [UInt8], withResponse: Bool) async throws {
        var request = ESPHomeBluetoothGATTWriteRequest()
        request.address = address
        request.handle = UInt32(handle)
        request.response = withResponse
        request.data = .init(value)
        try await send(.writeRequest, request)
    }

    func notify(_ address: UInt64, _ handle: UInt16) async throws {
        var request = ESPHomeBluetoothGATTNotifyRequest()
        request.address = address
        request.handle = UInt32(handle)
        request.enable = true
        try await send(.notifyRequest, request)
    }
}
