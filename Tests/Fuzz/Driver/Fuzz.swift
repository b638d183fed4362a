import CFuzzer
import CoreBluetooth
import FuzzTargets
import Glibc

/// The target that this process fuzzes; set once, before the first input.
nonisolated(unsafe) private var current = FuzzTarget.event

/// Runs libFuzzer on the target, which calls back with inputs until it finishes. Returns its exit status.
func fuzz(_ target: FuzzTarget, _ arguments: ArraySlice<String>) -> Int32 {
    current = target
    // Fuzzed apps misuse the API again and again.
    ProgrammerError.output.withLock { $0.write = { _ in } }
    var list: [UnsafeMutablePointer<CChar>?] = (["fuzz"] + arguments).map { strdup($0) } + [nil]
    var count = Int32(list.count - 1)
    return list.withUnsafeMutableBufferPointer { list in
        var base = list.baseAddress
        return LLVMFuzzerRunDriver(&count, &base) { octets, count in
            current.run(Array(UnsafeBufferPointer(start: octets, count: count)))
            return 0
        }
    }
}

/// Called by libFuzzer for a new input. For targets that take packets, it changes whole packets.
@_cdecl("LLVMFuzzerCustomMutator")
func mutate(_ octets: UnsafeMutablePointer<UInt8>, _ count: Int, _ limit: Int, _ seed: UInt32) -> Int {
    guard seed % 8 != 0 else { return LLVMFuzzerMutate(octets, count, limit) }
    var mutation = ScriptMutation(seed: UInt64(seed), changeBytes: changeBytes)
    let input = Array(UnsafeBufferPointer(start: octets, count: count))
    guard let result = mutation.mutate(input, of: current), !result.isEmpty, result.count <= limit else {
        return LLVMFuzzerMutate(octets, count, limit)
    }
    for (index, octet) in result.enumerated() { octets[index] = octet }
    return result.count
}

/// Changes a packet as libFuzzer changes inputs, with its dictionary and its recorded comparisons.
private func changeBytes(_ octets: [UInt8]) -> [UInt8] {
    var buffer = octets + [UInt8](repeating: 0, count: 64)
    let count = buffer.withUnsafeMutableBufferPointer { buffer in
        buffer.baseAddress.map { LLVMFuzzerMutate($0, octets.count, buffer.count) } ?? 0
    }
    return Array(buffer.prefix(count))
}
