/// State files that are valid, damaged, empty or of a later version, with caches, and exported bonds.
var stateSeeds: [Script] {
    let files = [
        stateFile(bonds: bond), stateFile(bonds: bond + "," + smallBond), stateFile(bonds: smallBond + "," + smallBond),
        stateFile(bonds: ""), stateFile(bonds: "{}"), #"{"format": 2}"#, #"{"format": 1}"#, "{}", "",
        #"{"format": 1, "other": {"a": [1, -2.5, 1e300, "\u00e9\ud83c\udf21", true, null, {}]}, "bonds": []}"#,
        #"{"format": 1, "bonds": {}}"#, #"{"format": 1, "identity": []}"#,
    ]
    let exports = [
        #"{"format": 1, "host": "a", "identity": \#(identity), "bonds": [\#(bond), \#(smallBond)]}"#,
        #"{"format": 1, "host": "a", "bonds": []}"#,
    ]
    return files.map { file in
        Script([packet(0, file), packet(1, cache), packet(1, #"{"services": []}"#)])
    } + exports.map { Script([packet(2, $0)]) }
}

private func packet(_ choice: UInt8, _ text: String) -> Script.Packet {
    Script.Packet(choice: choice, octets: Array(text.utf8))
}

private func stateFile(bonds: String) -> String {
    #"{"format": 1, "identity": \#(identity), "bonds": [\#(bonds)]}"#
}

private let identity = """
    {"staticAddress": "F0:12:34:56:78:9A", "resolvingKey": "0123456789abcdef0123456789abcdef"}
    """

private let smallBond = #"{"address": "00:1A:7D:DA:71:13", "addressType": "public"}"#

private let bond = """
    {"address": "C0:00:00:00:00:01", "addressType": "random", "privileged": true,
     "centralKey": {"value": "00000000000000000123456789abcdef", "keySize": 8, "authenticated": true,
      "secureConnections": false, "encryptedDiversifier": "1234", "randomNumber": "0123456789abcdef"},
     "peripheralKey": {"value": "0123456789abcdef0123456789abcdef", "keySize": 16, "authenticated": true,
      "secureConnections": true},
     "identityResolvingKey": "0123456789abcdef0123456789abcdef",
     "peerSigningKey": {"value": "0123456789abcdef0123456789abcdef", "authenticated": false, "nextCounter": 5},
     "ownSigningKey": {"value": "1123456789abcdef0123456789abcdef", "authenticated": true, "nextCounter": 4294967295},
     "server": {"configurations": [{"handle": 3, "value": 1}, {"handle": 9, "value": 2}], "clientFeatures": 7,
      "knownDatabaseHash": "0123456789abcdef0123456789abcdef", "isServiceChangedOwed": true}}
    """

private let cache = """
    {"hash": "0123456789abcdef0123456789abcdef", "services": [{"uuid": "180F", "isPrimary": true, "handle": 1,
     "endHandle": 9, "includedServices": [{"uuid": "1809", "declarationHandle": 2, "handle": 16, "endHandle": 20}],
     "characteristics": [{"uuid": "2A19", "handle": 3, "valueHandle": 4, "endHandle": 6, "properties": 18,
      "descriptors": [{"uuid": "2902", "handle": 5}]}]}]}
    """
