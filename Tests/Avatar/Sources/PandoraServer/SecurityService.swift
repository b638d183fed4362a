import BLE
import GRPCCore
import SwiftProtobuf

/// The interface `pandora.Security`, for LE.
struct SecurityService: Pandora_Security.SimpleServiceProtocol {
    let device: Device

    func onPairing(
        request: RPCAsyncSequence<Pandora_PairingEventAnswer, any Error>,
        response: RPCWriter<Pandora_PairingEvent>,
        context: ServerContext
    ) async throws {
        try await perform {
            let pairings = device.pairings
            try await pairings.listen { events in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { for try await answer in request { await pairings.receive(answer) } }
                    group.addTask { for await event in events { try await response.write(event) } }
                    // The call ends if the client sends no further answers, or if the events end.
                    defer { group.cancelAll() }
                    try await group.next()
                }
            }
        }
    }

    func secure(request: Pandora_SecureRequest, context: ServerContext) async throws -> Pandora_SecureResponse {
        guard case .le(let level)? = request.level else { throw RPCError.isForClassic }
        return try await perform {
            let connection = try await device.connection(try request.connection.number)
            let outcome = await secure(connection, level)
            return .with { response in
                switch outcome {
                case .success: response.success = .init()
                case .notReached: response.notReached = .init()
                case .connectionDied: response.connectionDied = .init()
                case .pairingFailure: response.pairingFailure = .init()
                case .encryptionFailure: response.encryptionFailure = .init()
                }
            }
        }
    }

    private func secure(_ connection: Device.Connection, _ level: Pandora_LESecurityLevel) async -> SecurityOutcome {
        guard let required = level.required else { return .success }
        guard let link = connection.link else { return .connectionDied }
        do {
            let strength =
                if let peripheral = connection.peripheral {
                    try await peripheral.pair(required)
                } else {
                    try await device.adapter.peripheral.requestSecurity(of: link, required)
                }
            return level.isReached(by: strength) ? .success : .notReached
        } catch BLEError.security(let error) {
            return SecurityOutcome(error)
        } catch {
            return .connectionDied
        }
    }

    func waitSecurity(
        request: Pandora_WaitSecurityRequest,
        context: ServerContext
    ) async throws -> Pandora_WaitSecurityResponse {
        guard case .le(let level)? = request.level else { throw RPCError.isForClassic }
        return try await perform {
            let outcome = try await device.value(of: try request.connection.number) { $0.outcome(for: level) }
            return .with { response in
                switch outcome {
                case .success: response.success = .init()
                case .connectionDied: response.connectionDied = .init()
                case .pairingFailure, .notReached: response.pairingFailure = .init()
                case .encryptionFailure: response.encryptionFailure = .init()
                }
            }
        }
    }
}

/// The interface `pandora.SecurityStorage`.
struct SecurityStorageService: Pandora_SecurityStorage.SimpleServiceProtocol {
    let device: Device

    func isBonded(
        request: Pandora_IsBondedRequest,
        context: ServerContext
    ) async throws -> Google_Protobuf_BoolValue {
        try await perform {
            let address = DeviceAddress(request.address)
            return Google_Protobuf_BoolValue(try await device.adapter.bonds().contains { $0.identity == address })
        }
    }

    func deleteBond(request: Pandora_DeleteBondRequest, context: ServerContext) async throws -> Google_Protobuf_Empty {
        try await perform {
            if let address = DeviceAddress(request.address) { _ = try await device.adapter.removeBond(address) }
            return Google_Protobuf_Empty()
        }
    }
}

/// The result of `Secure` and `WaitSecurity`.
enum SecurityOutcome {
    case success
    case notReached
    case connectionDied
    case pairingFailure
    case encryptionFailure

    init(_ error: SecurityError) {
        self =
            switch error {
            case .pairing(.linkEnded): .connectionDied
            case .insufficient: .notReached
            case .encryptionFailed, .keyMissing: .encryptionFailure
            case .pairing, .timedOut, .repeatedAttempts, .refused, .weakerThanBond, .tooManyBonds: .pairingFailure
            }
    }
}

extension Device.Connection {
    /// The outcome for a test that waits for a security level; nil if there is none yet.
    fileprivate func outcome(for level: Pandora_LESecurityLevel) -> SecurityOutcome? {
        if isEnded { return .connectionDied }
        if level.required == nil { return .success }
        switch pairing {
        case .success(let strength)?: return level.isReached(by: strength) ? .success : .notReached
        case .failure(let error)?: return SecurityOutcome(error)
        case nil: break
        }
        guard !isPairing, let strength, level.isReached(by: strength) else { return nil }
        return .success
    }
}

extension Pandora_LESecurityLevel {
    /// The security to request for the level; nil if none.
    ///
    /// The suite expects level 3 also from devices without input and output, which cannot authenticate each other. So
    /// it is any pairing here, as in the Pandora server of Bumble. The capabilities of the devices select the model.
    fileprivate var required: RequiredSecurity? {
        switch self {
        case .leLevel1: nil
        case .leLevel4: RequiredSecurity(isAuthenticated: true, isSecureConnections: true, keySizeInBytes: 16)
        default: .encryption
        }
    }

    fileprivate func isReached(by strength: KeyStrength) -> Bool {
        self != .leLevel4 || strength.isAuthenticated && strength.isSecureConnections && strength.keySize == 16
    }
}

extension DeviceAddress {
    fileprivate init?(_ address: Pandora_IsBondedRequest.OneOf_Address?) {
        switch address {
        case .public(let data)?: self.init(data, isRandom: false)
        case .random(let data)?: self.init(data, isRandom: true)
        case nil: return nil
        }
    }

    fileprivate init?(_ address: Pandora_DeleteBondRequest.OneOf_Address?) {
        switch address {
        case .public(let data)?: self.init(data, isRandom: false)
        case .random(let data)?: self.init(data, isRandom: true)
        case nil: return nil
        }
    }
}

extension RPCError {
    fileprivate static let isForClassic = RPCError(code: .unimplemented, message: "only levels of LE are supported")
}
