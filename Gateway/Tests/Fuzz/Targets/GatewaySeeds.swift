import ESPHomeMessages
import NIOCore
import SwiftProtobuf

@testable import ESPHomeProtocol

/// A message of each kind that clients send: the type, then the payload.
private var requests: [[UInt8]] {
    let address: UInt64 = 0xC0DE_0000_0001
    func request(_ type: MessageType, _ message: (any SwiftProtobuf.Message)? = nil) -> [UInt8] {
        let bytes: [UInt8] = (try? message?.serializedBytes()) ?? []
        return [UInt8(type.rawValue & 0xFF)] + bytes
    }
    let parameters = ESPHomeBluetoothSetConnectionParamsRequest.with { $0.minInterval = 6 }
    var requests: [[UInt8]] = [
        request(.pingRequest), request(.deviceInfoRequest), request(.listEntitiesRequest), request(.getTimeRequest),
        request(.authenticationRequest), request(.subscribeStatesRequest), request(.subscribeAdvertisementsRequest),
        request(.unsubscribeAdvertisementsRequest), request(.subscribeConnectionsFreeRequest), [200, 1, 2, 3],
        request(.scannerSetModeRequest, ESPHomeBluetoothScannerSetModeRequest.with { $0.mode = .active }),
        request(.setConnectionParametersRequest, parameters),
        request(.getServicesRequest, ESPHomeBluetoothGATTGetServicesRequest.with { $0.address = address }),
        request(.disconnectRequest),
    ]
    for kind in 0..<7 {
        requests.append(
            request(
                .deviceRequest,
                ESPHomeBluetoothDeviceRequest.with {
                    $0.address = address
                    $0.requestType = .init(rawValue: kind) ?? .connect
                    $0.addressType = 1
                }
            )
        )
    }
    // An address and a handle, as read, write and notify requests begin.
    for type in UInt8(73)...78 {
        requests.append([type, 8, 0x81, 0x80, 0x80, 0x80, 0xE0, 0x9B, 0x30, 16, 3])
        requests.append([type, 8, 1, 16, 3, 24, 1, 34, 2, 0xAB, 0xCD])
    }
    return requests
}

private let hello: [UInt8] = [1, 10, 4] + Array("fuzz".utf8) + [16, 1, 24, 10]

/// Each kind of session with each request, alone and together, whole, changed and in pieces.
var sessionSeeds: [FuzzScript] {
    var scripts: [FuzzScript] = []
    for kind in UInt8(0)..<4 {
        let start = [FuzzScript.Step(kind), FuzzScript.Step(1, hello)]
        scripts.append(FuzzScript(start + requests.map { FuzzScript.Step(1, $0) }))
        for action: UInt8 in [2, 3, 5, 42] {
            let steps = [FuzzScript.Step(action, requests[0]), FuzzScript.Step(1, requests[1])]
            scripts.append(FuzzScript(start + steps))
        }
        scripts.append(FuzzScript([start[0], FuzzScript.Step(1, requests[1])]))
        scripts.append(FuzzScript(start + [FuzzScript.Step(12 << 3 | 4), FuzzScript.Step(31 << 3 | 4)]))
        scripts.append(
            FuzzScript(start + [FuzzScript.Step(6, [200, 255]), FuzzScript.Step(6, [255, 255, 255, 255])])
        )
        scripts.append(FuzzScript(start + [FuzzScript.Step(7, [0, 0, 7]), FuzzScript.Step(0, [0, 0, 7, 0, 0, 7])]))
    }
    // A handshake with bytes of the script.
    let handshake = [1, 0, 0, 1, 0, 49, 0] + [UInt8](repeating: 9, count: 48)
    scripts.append(FuzzScript([FuzzScript.Step(3), FuzzScript.Step(0, handshake)]))
    scripts.append(FuzzScript([FuzzScript.Step(3), FuzzScript.Step(0, [1, 0x7F, 0xFF]), FuzzScript.Step(0, [0])]))
    return scripts
}

/// Clients that greet, request, do not read, are silent and leave.
var clientSeeds: [FuzzScript] {
    let greeting = (UInt8(0)..<5).flatMap { index in
        [FuzzScript.Step(index << 3), FuzzScript.Step(index << 3 | 2, hello)]
    }
    var scripts = requests.map { FuzzScript(greeting + [FuzzScript.Step(2, $0), FuzzScript.Step(8 | 2, $0)]) }
    let subscription = FuzzScript.Step(2, [66])
    let batch = FuzzScript.Step(6, [UInt8](repeating: 0x02, count: 31))
    scripts.append(FuzzScript(greeting + [subscription, FuzzScript.Step(3)] + Array(repeating: batch, count: 80)))
    scripts.append(FuzzScript(greeting + [FuzzScript.Step(4, [61]), FuzzScript.Step(4, [200])]))
    scripts.append(FuzzScript((UInt8(0)..<30).map { FuzzScript.Step($0 << 3) } + [FuzzScript.Step(5), batch]))
    scripts.append(FuzzScript(greeting + [subscription, FuzzScript.Step(7 | 16), FuzzScript.Step(7 | 24)]))
    return scripts
}
