import ESPHomeMessages
import ESPHomeProtocol

// Messages about devices. Addresses are 48-bit numbers; errors are ``ClientErrorCode``s, 0 for success.
extension Message {
    static func connected(_ address: UInt64, mtu: Int) -> Message {
        var response = ESPHomeBluetoothDeviceConnectionResponse()
        response.address = address
        response.connected = true
        response.mtu = UInt32(clamping: mtu)
        return Message(.deviceConnectionResponse, response)
    }

    static func disconnected(_ address: UInt64, error: Int32) -> Message {
        var response = ESPHomeBluetoothDeviceConnectionResponse()
        response.address = address
        response.error = error
        return Message(.deviceConnectionResponse, response)
    }

    static func failure(_ address: UInt64, handle: UInt16, error: Int32) -> Message {
        var response = ESPHomeBluetoothGATTErrorResponse()
        response.address = address
        response.handle = UInt32(handle)
        response.error = error
        return Message(.errorResponse, response)
    }

    static func pairing(_ address: UInt64, error: Int32) -> Message {
        var response = ESPHomeBluetoothDevicePairingResponse()
        response.address = address
        response.paired = error == 0
        response.error = error
        return Message(.pairingResponse, response)
    }

    static func unpairing(_ address: UInt64, error: Int32) -> Message {
        var response = ESPHomeBluetoothDeviceUnpairingResponse()
        response.address = address
        response.success = error == 0
        response.error = error
        return Message(.unpairingResponse, response)
    }

    static func cacheCleared(_ address: UInt64, error: Int32 = 0) -> Message {
        var response = ESPHomeBluetoothDeviceClearCacheResponse()
        response.address = address
        response.success = error == 0
        response.error = error
        return Message(.clearCacheResponse, response)
    }

    static func parametersSet(_ address: UInt64, error: Int32) -> Message {
        var response = ESPHomeBluetoothSetConnectionParamsResponse()
        response.address = address
        response.error = error
        return Message(.setConnectionParametersResponse, response)
    }

    static func connectionsFree(free: Int, limit: Int, allocated: [UInt64]) -> Message {
        var response = ESPHomeBluetoothConnectionsFreeResponse()
        response.free = UInt32(clamping: free)
        response.limit = UInt32(clamping: limit)
        response.allocated = allocated
        return Message(.connectionsFreeResponse, response)
    }
}
