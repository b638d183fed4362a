import GATT
import Profiles

/// Reads a profile as `ble serve` does, and publishes what it says. A JSON text that is read is written so that it is read
/// alike.
func fuzzProfile(_ input: [UInt8]) {
    guard let json = try? JSON(parsing: input) else { return }
    let text = json.description
    require((try? JSON(parsing: Array(text.utf8))) == json, "JSON that is written otherwise than it was read")
    guard let profile = try? Profile(decoding: json) else { return }
    let payload = profile.payload
    require(payload.scanResponseData.length <= 31, "scan response data of \(payload.scanResponseData.length) octets")
    let server = Server()
    _ = try? server.publish([.genericAttribute] + profile.definitions)
}
