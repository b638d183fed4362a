import BLE

/// The services of `Tests/InteropTests/bumble_peripheral.py`, as far as runs name them.
enum Bumble {
    static let address = DeviceAddress(0xF001_0203_0405, isRandom: true)
    static let long = vendor(0x11)
    static let store = vendor(0x15)
    static let reliable = vendor(0x16)
    static let sink = vendor(0x17)
    static let encrypted = vendor(0x21)
    static let authenticated = vendor(0x22)
    static let authorized = vendor(0x23)
    static let failing = vendor(0x24)
    static let notify = vendor(0x31)
    static let indicate = vendor(0x32)

    static func vendor(_ number: UInt16) -> BluetoothUUID {
        let digits = String(number, radix: 16, uppercase: true)
        let text = "B1E0" + String(repeating: "0", count: 4 - digits.count) + digits + "-5EED-4000-8000-C0FFEE000000"
        return BluetoothUUID(text) ?? "0000"
    }
}

/// A peer whose attributes have been discovered.
struct KnownPeer: Sendable {
    let peer: RemotePeripheral
    let characteristics: [RemoteCharacteristic]

    init(_ peer: RemotePeripheral, _ stage: any Stage) async throws {
        self.peer = peer
        characteristics = try await peer.discoverAll().flatMap(\.characteristics)
        try await stage.settle()
    }

    func characteristic(_ uuid: BluetoothUUID) throws -> RemoteCharacteristic {
        guard let found = characteristics.first(where: { $0.uuid == uuid }) else {
            throw UnexpectedPeer(what: "no \(uuid)")
        }
        return found
    }

    func handle(_ uuid: BluetoothUUID) throws -> AttributeHandle {
        try characteristic(uuid).valueHandle
    }
}

extension Adapter {
    /// Finds a peer, connects to it, runs `body` and disconnects.
    func meet(
        _ address: DeviceAddress = Bumble.address,
        isSought: Bool = false,
        on stage: any Stage,
        _ body: @Sendable (RemotePeripheral) async throws -> Void
    ) async throws {
        if isSought {
            for try await advertisement in central.scan() where advertisement.address == address { break }
            try await stage.settle()
        }
        let peer = try await central.connect(to: address)
        try await stage.settle()
        try await body(peer)
        try await stage.settle()
        await peer.disconnect()
    }
}

extension RemotePeripheral {
    /// Discovers all attributes and reads all that are readable; refusals are results.
    func explore(_ stage: any Stage) async throws {
        let services = try await discoverAll()
        try await stage.settle()
        for service in services {
            for characteristic in service.characteristics {
                if characteristic.properties.contains(.read) { try await tryToRead(characteristic.valueHandle) }
                for descriptor in characteristic.descriptors { try await tryToRead(descriptor.handle) }
            }
        }
    }

    func tryToRead(_ handle: AttributeHandle) async throws {
        do throws(BLEError) {
            _ = try await read(handle)
        } catch .attribute {
        } catch {
            throw error
        }
    }

    func tryToWrite(_ value: [UInt8], to handle: AttributeHandle) async throws {
        do throws(BLEError) {
            try await write(value, to: handle)
        } catch .attribute {
        } catch {
            throw error
        }
    }
}
