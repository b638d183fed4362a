import ESPHomeMessages

extension BluetoothRequest {
    /// Decodes a message; nil if it is no request about Bluetooth, or of a kind that is not known.
    ///
    /// - Throws: ``ProtocolError/undecodableMessage(_:)``, also if a handle has more than 16 bits or an address more
    ///   than 48.
    init?(_ message: Message) throws(ProtocolError) {
        func handle(_ number: UInt32) throws(ProtocolError) -> UInt16 {
            guard let handle = UInt16(exactly: number) else { throw .undecodableMessage(message.type) }
            return handle
        }
        func address(_ number: UInt64) throws(ProtocolError) -> UInt64 {
            guard number >> 48 == 0 else { throw .undecodableMessage(message.type) }
            return number
        }
        switch message.type {
        case .subscribeAdvertisementsRequest: self = .subscribeAdvertisements
        case .unsubscribeAdvertisementsRequest: self = .unsubscribeAdvertisements
        case .scannerSetModeRequest:
            let request = try message.decode(as: ESPHomeBluetoothScannerSetModeRequest.self)
            self = .setScannerMode(isActive: request.mode == .active)
        case .subscribeConnectionsFreeRequest: self = .subscribeConnectionsFree
        case .deviceRequest:
            let deviceRequest = try message.decode(as: ESPHomeBluetoothDeviceRequest.self)
            _ = try address(deviceRequest.address)
            guard let request = Self.make(deviceRequest) else { return nil }
            self = request
        case .setConnectionParametersRequest:
            let request = try message.decode(as: ESPHomeBluetoothSetConnectionParamsRequest.self)
            let parameters = RequestedConnectionParameters(
                minimumInterval: request.minInterval,
                maximumInterval: request.maxInterval,
                latency: request.latency,
                timeout: request.timeout
            )
            self = .setConnectionParameters(try address(request.address), parameters)
        case .getServicesRequest:
            let request = try message.decode(as: ESPHomeBluetoothGATTGetServicesRequest.self)
            self = .getServices(try address(request.address))
        case .readRequest, .readDescriptorRequest:
            let fields = try AttributeFields(message)
            self = .read(
                try address(fields.address),
                handle: try handle(fields.handle),
                isDescriptor: message.type == .readDescriptorRequest
            )
        case .writeRequest:
            let request = try message.decode(as: ESPHomeBluetoothGATTWriteRequest.self)
            self = .write(
                try address(request.address),
                handle: try handle(request.handle),
                Array(request.data),
                withResponse: request.response,
                isDescriptor: false
            )
        case .writeDescriptorRequest:
            let request = try message.decode(as: ESPHomeBluetoothGATTWriteDescriptorRequest.self)
            self = .write(
                try address(request.address),
                handle: try handle(request.handle),
                Array(request.data),
                withResponse: true,
                isDescriptor: true
            )
        case .notifyRequest:
            let request = try message.decode(as: ESPHomeBluetoothGATTNotifyRequest.self)
            self = .notify(try address(request.address), handle: try handle(request.handle), isEnabled: request.enable)
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
