import ESPHomeMessages

extension BluetoothRequest {
    /// Decodes a message; nil if it is no request about Bluetooth, or of a kind that is not known.
    ///
    /// - Throws: ``ProtocolError/undecodableMessage(_:)``, also if a handle has more than 16 bits.
    init?(_ message: Message) throws(ProtocolError) {
        func handle(_ number: UInt32) throws(ProtocolError) -> UInt16 {
            guard let handle = UInt16(exactly: number) else { throw .undecodableMessage(message.type) }
            return handle
        }
        switch message.type {
        case .subscribeAdvertisementsRequest: self = .subscribeAdvertisements
        case .unsubscribeAdvertisementsRequest: self = .unsubscribeAdvertisements
        case .scannerSetModeRequest:
            let request = try message.decode(as: ESPHomeBluetoothScannerSetModeRequest.self)
            self = .setScannerMode(isActive: request.mode == .active)
        case .subscribeConnectionsFreeRequest: self = .subscribeConnectionsFree
        case .deviceRequest:
            guard let request = Self.make(try message.decode(as: ESPHomeBluetoothDeviceRequest.self)) else {
                return nil
            }
            self = request
        case .setConnectionParametersRequest:
            let request = try message.decode(as: ESPHomeBluetoothSetConnectionParamsRequest.self)
            let parameters = RequestedConnectionParameters(
                minimumInterval: request.minInterval,
                maximumInterval: request.maxInterval,
                latency: request.latency,
                timeout: request.timeout
            )
            self = .setConnectionParameters(request.address, parameters)
        case .getServicesRequest:
            self = .getServices(try message.decode(as: ESPHomeBluetoothGATTGetServicesRequest.self).address)
        case .readRequest:
            let request = try message.decode(as: ESPHomeBluetoothGATTReadRequest.self)
            self = .read(request.address, handle: try handle(request.handle), isDescriptor: false)
        case .readDescriptorRequest:
            let request = try message.decode(as: ESPHomeBluetoothGATTReadDescriptorRequest.self)
            self = .read(request.address, handle: try handle(request.handle), isDescriptor: true)
        case .writeRequest:
            let request = try message.decode(as: ESPHomeBluetoothGATTWriteRequest.self)
            self = .write(
                request.address,
                handle: try handle(request.handle),
                Array(request.data),
                withResponse: request.response,
                isDescriptor: false
            )
        case .writeDescriptorRequest:
            let request = try message.decode(as: ESPHomeBluetoothGATTWriteDescriptorRequest.self)
            self = .write(
                request.address,
                handle: try handle(request.handle),
                Array(request.data),
                withResponse: true,
                isDescriptor: true
            )
        case .notifyRequest:
            let request = try message.decode(as: ESPHomeBluetoothGATTNotifyRequest.self)
            self = .notify(request.address, handle: try handle(request.handle), isEnabled: request.enable)
        default: return nil
        }
    }

    private static func make(_ request: ESPHomeBluetoothDeviceRequest) -> BluetoothRequest? {
        let isRandom = request.hasAddressType_p ? request.addressType != 0 : nil
        return switch request.requestType {
        case .connect, .connectV3WithoutCache: .connect(request.address, isRandom: isRandom, usesCache: false)
        case .connectV3WithCache: .connect(request.address, isRandom: isRandom, usesCache: true)
        case .disconnect: .disconnect(request.address)
        case .pair: .pair(request.address)
        case .unpair: .unpair(request.address)
        case .clearCache: .clearCache(request.address)
        case .UNRECOGNIZED: nil
        }
    }
}
