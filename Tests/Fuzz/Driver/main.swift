import CFuzzer
import Foundation
import FuzzTargets

// fuzz TARGET [options and folders of libFuzzer]: fuzzes a target.
// fuzz --seeds TARGET CAPTURE... FOLDER: writes the inputs that captures contain for a target into a folder.
// fuzz --targets [NAME...]: lists the targets with these names, or all.

func fail(_ text: String) -> Never {
    FileHandle.standardError.write(Data((text + "\n").utf8))
    exit(2)
}

func target(_ name: String) -> FuzzTarget {
    targets([name])[0]
}

func targets(_ names: ArraySlice<String>) -> [FuzzTarget] {
    names.flatMap { name in
        let targets = FuzzTarget.named(name)
        if targets.isEmpty {
            fail("fuzz: no target \(name); there are \(FuzzTarget.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return targets
    }
}

let arguments = CommandLine.arguments
switch arguments.dropFirst().first {
case "--targets":
    let names = arguments.dropFirst(2)
    for target in names.isEmpty ? FuzzTarget.allCases : targets(names) { print(target.rawValue) }
case "--seeds" where arguments.count >= 5:
    do {
        let files = arguments.dropFirst(3)
        try writeSeeds(of: target(arguments[2]), from: files.dropLast(), to: files.last ?? ".")
    } catch {
        fail("fuzz: \(error)")
    }
case let name? where !name.hasPrefix("-"): exit(fuzz(target(name), arguments.dropFirst(2)))
default:
    fail(
        "usage: fuzz TARGET [OPTION...] [FOLDER...] | fuzz --seeds TARGET CAPTURE... FOLDER | fuzz --targets [NAME...]"
    )
}
