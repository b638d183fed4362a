import BLEGATT
import BLEHCITransport
import BLEProfiles
import BluetoothTypes

/// Fuzzes the reading of a profile as in `ble serve`, and publishes its services. JSON that can be read must be written
/// so that it reads as the same value. The published services must be those of the profile. The bytes are also read as
/// arguments of commands, and as names of controllers.
func fuzzProfile(_ input: [UInt8]) {
    fuzzArguments(String(decoding: input, as: UTF8.self))
    fuzzControllerNames(String(decoding: input, as: UTF8.self))
    guard let json = try? JSON(parsing: input) else { return }
    let text = json.description
    require((try? JSON(parsing: Array(text.utf8))) == json, "JSON that is written otherwise than it was read")
    do throws(ProfileError) {
        publish(try Profile(decoding: json))
    } catch {
        requirePrintable("\(error)")
    }
}

private func publish(_ profile: Profile) {
    let payload = profile.payload
    require(payload.scanResponseData.length <= 31, "scan response data of \(payload.scanResponseData.length) bytes")
    let server = Server()
    guard let published = try? server.publish([.genericAttribute] + profile.definitions).dropFirst() else { return }
    require(published.count == profile.services.count, "\(published.count) services of \(profile.services.count)")
    for (service, expected) in zip(published, profile.services) {
        require(service.uuid == expected.uuid, "another service than the profile's")
        require(expected.handle == nil || service.handle == expected.handle, "another handle than the profile's")
        require(service.characteristics.count == expected.characteristics.count, "characteristics are missing")
        for (characteristic, expected) in zip(service.characteristics, expected.characteristics) {
            require(server.value(of: characteristic.valueHandle) == expected.value, "another value than the profile's")
        }
    }
}

/// Reads a text as each kind of argument. Errors must be safe to print.
private func fuzzArguments(_ text: String) {
    do throws(ArgumentProblem) {
        let handle = try AttributeHandle(argument: text)
        require((try? AttributeHandle(argument: "\(handle.rawValue)")) == handle, "a handle that is read otherwise")
    } catch {
        requirePrintable(error.description)
    }
    do throws(ArgumentProblem) {
        let octets = try [UInt8](argument: text)
        require((try? [UInt8](argument: octets.hexadecimal)) == octets, "bytes that are read otherwise")
    } catch {
        requirePrintable(error.description)
    }
    do throws(ArgumentProblem) {
        let uuid = try BluetoothUUID(argument: text)
        require((try? BluetoothUUID(argument: uuid.description)) == uuid, "a UUID that is read otherwise")
        requirePrintable(uuid.withName)
    } catch {
        requirePrintable(error.description)
    }
}

/// Reads a text as the name of a controller, and as an address to listen on. A name or an address
/// that is written again must read as the same.
private func fuzzControllerNames(_ text: String) {
    if let name = try? AdapterSpecification(parsing: text) {
        require((try? AdapterSpecification(parsing: name.description)) == name, "a controller that is read otherwise")
    }
    if let address = try? ListeningAddress(parsing: text) {
        require((try? ListeningAddress(parsing: address.description)) == address, "an address that is read otherwise")
    }
}

private func requirePrintable(_ text: String) {
    require(text.unicodeScalars.allSatisfy(isPrintable), "a text that may control the terminal")
}
