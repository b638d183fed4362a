import CFuzzer
import GatewayFuzzTargets
import Glibc

/// The target that this process fuzzes; set once, before the first input.
nonisolated(unsafe) private var current = GatewayFuzzTarget.session

/// Runs libFuzzer on the target, which calls back with inputs until it finishes. Returns its exit status.
func fuzz(_ target: GatewayFuzzTarget, _ arguments: ArraySlice<String>) -> Int32 {
    current = target
    var list: [UnsafeMutablePointer<CChar>?] = (["fuzz-gateway"] + arguments).map { strdup($0) } + [nil]
    var count = Int32(list.count - 1)
    return list.withUnsafeMutableBufferPointer { list in
        var base = list.baseAddress
        return LLVMFuzzerRunDriver(&count, &base) { octets, count in
            current.run(Array(UnsafeBufferPointer(start: octets, count: count)))
            return 0
        }
    }
}

/// Called by libFuzzer for a new input: changes whole steps.
@_cdecl("LLVMFuzzerCustomMutator")
func mutate(_ octets: UnsafeMutablePointer<UInt8>, _ count: Int, _ limit: Int, _ seed: UInt32) -> Int {
    guard seed % 8 != 0 else { return LLVMFuzzerMutate(octets, count, limit) }
    var mutation = FuzzScriptMutation(seed: UInt64(seed), changeBytes: changeBytes)
    let result = mutation.mutate(FuzzScript(Array(UnsafeBufferPointer(start: octets, count: count)))).octets
    guard !result.isEmpty, result.count <= limit else { return LLVMFuzzerMutate(octets, count, limit) }
    for (index, octet) in result.enumerated() { octets[index] = octet }
    return result.count
}

/// Changes a step as libFuzzer changes inputs, with its recorded comparisons.
private func changeBytes(_ octets: [UInt8]) -> [UInt8] {
    var buffer = octets + [UInt8](repeating: 0, count: 64)
    let count = buffer.withUnsafeMutableBufferPointer { buffer in
        buffer.baseAddress.map { LLVMFuzzerMutate($0, octets.count, buffer.count) } ?? 0
    }
    return Array(buffer.prefix(count))
}
