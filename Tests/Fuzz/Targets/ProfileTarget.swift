import BLEGATT
import BLEProfiles

/// Fuzzes the reading of a profile as in `ble serve`, and publishes its services. JSON that can be read must be written
/// so that it reads as the same value.
func fuzzProfile(_ input: [UInt8]) {
    guard let json = try? JSON(parsing: input) else { return }
    let text = json.description
    require((try? JSON(parsing: Array(text.utf8))) == json, "JSON that is written otherwise than it was read")
    guard let profile = try? Profile(decoding: json) else { return }
    let payload = profile.payload
    require(payload.scanResponseData.length <= 31, "scan response data of \(payload.scanResponseData.length) bytes")
    let server = Server()
    _ = try? server.publish([.genericAttribute] + profile.definitions)
}
