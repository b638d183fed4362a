import CFuzzer
import Foundation
import GatewayFuzzTargets

// fuzz-gateway TARGET [options and folders of libFuzzer]: fuzzes a target.
// fuzz-gateway --seeds TARGET [FILE...] FOLDER: writes inputs for a target into a folder. The files are not used.
// fuzz-gateway --targets [NAME...]: lists the targets with these names, or all.

func fail(_ text: String) -> Never {
    FileHandle.standardError.write(Data((text + "\n").utf8))
    exit(2)
}

func targets(_ names: ArraySlice<String>) -> [GatewayFuzzTarget] {
    names.flatMap { name in
        let targets = GatewayFuzzTarget.named(name)
        if targets.isEmpty {
            fail("fuzz-gateway: no target \(name); there are \(GatewayFuzzTarget.allCases.map(\.rawValue))")
        }
        return targets
    }
}

func writeSeeds(of target: GatewayFuzzTarget, to folder: String) throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    for (index, input) in target.seeds.enumerated() {
        try Data(input).write(to: URL(fileURLWithPath: folder).appendingPathComponent("made-\(index)"))
    }
}

let arguments = CommandLine.arguments
switch arguments.dropFirst().first {
case "--targets":
    let names = arguments.dropFirst(2)
    for target in names.isEmpty ? GatewayFuzzTarget.allCases : targets(names) { print(target.rawValue) }
case "--seeds" where arguments.count >= 4:
    do {
        try writeSeeds(of: targets(arguments[2...2])[0], to: arguments[arguments.count - 1])
    } catch {
        fail("fuzz-gateway: \(error)")
    }
case let name? where !name.hasPrefix("-"): exit(fuzz(targets([name])[0], arguments.dropFirst(2)))
default:
    fail("usage: fuzz-gateway TARGET [OPTION...] [FOLDER...] | --seeds TARGET FOLDER | --targets [NAME...]")
}
