import CFuzzer
import Foundation
import FuzzTargets

// fuzz TARGET [options and folders of libFuzzer]: fuzzes a target.
// fuzz --seeds TARGET CAPTURE... FOLDER: writes what the captures hold for a target into a folder.
// fuzz --targets: lists the targets.

func fail(_ text: String) -> Never {
    FileHandle.standardError.write(Data((text + "\n").utf8))
    exit(2)
}

func target(_ name: String) -> FuzzTarget {
    guard let target = FuzzTarget(rawValue: name) else {
        fail("fuzz: no target \(name); there are \(FuzzTarget.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return target
}

let arguments = CommandLine.arguments
switch arguments.dropFirst().first {
case "--targets": print(FuzzTarget.allCases.map(\.rawValue).joined(separator: "\n"))
case "--seeds" where arguments.count >= 5:
    do {
        try writeSeeds(of: target(arguments[2]), from: arguments[3..<(arguments.count - 1)], to: arguments[arguments.count - 1])
    } catch {
        fail("fuzz: \(error)")
    }
case let name? where !name.hasPrefix("-"): exit(fuzz(target(name), arguments.dropFirst(2)))
default: fail("usage: fuzz TARGET [OPTION...] [FOLDER...] | fuzz --seeds TARGET CAPTURE... FOLDER | fuzz --targets")
}
