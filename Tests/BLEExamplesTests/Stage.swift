import CoreBluetooth
import Foundation
import Testing

@testable import BLEExamples

/// Both ends of an example on two software controllers in a virtual air of their own.
struct Stage {
    let air = "virtual:\(UUID().uuidString)"
    let peripheral: Performance
    let central: Performance

    init(peripheral: Part, central: Part) {
        let options = [CBCentralManagerOptionAdapterKey: air]
        self.peripheral = Performance(peripheral, options: options)
        self.central = Performance(central, options: options)
    }

    init(_ example: Example) {
        self.init(peripheral: example.peripheral, central: example.central)
    }

    /// Runs both ends until each has shown everything that is expected. Each central is released as soon as it has.
    ///
    /// - Parameter body: called with the central before that, on the main queue.
    /// - Returns: the lines of both.
    @discardableResult
    func perform(
        beforeTheEnd body: @MainActor @Sendable (_ central: Performance) throws -> Void = { _ in }
    ) async throws -> (peripheral: [String], central: [String]) {
        await peripheral.begin()
        await central.begin()
        async let left = peripheral.allLines
        let right = await central.allLines
        try await body(central)
        await central.end()
        let lines = (await left, right)
        await peripheral.end()
        return lines
    }
}

extension Stage {
    /// Runs both ends. When the central first shows a line, the peripheral's device vanishes and then comes back.
    ///
    /// - Parameters:
    ///   - peripheral: the end that vanishes.
    ///   - line: the line, in full.
    ///   - central: the other end. It stays connected after the line.
    /// - Returns: the lines of the central.
    static func perform(_ peripheral: Part, losingItAt line: String, central: Part) async -> [String] {
        let stage = Stage(peripheral: peripheral, central: central)
        let replacement = Performance(peripheral, options: [CBPeripheralManagerOptionAdapterKey: stage.air])
        await stage.peripheral.begin()
        await stage.central.begin()
        var lines: [String] = []
        for await shown in stage.central.lines {
            let isFirst = shown == line && !lines.contains(line)
            lines.append(shown)
            guard isFirst else { continue }
            await stage.peripheral.end()
            await replacement.begin()
        }
        #expect(stage.central.missing == [])
        await stage.central.end()
        await replacement.end()
        return lines
    }
}

extension Performance {
    /// The lines that are shown until all expected ones were shown, or the test's time is over.
    var allLines: [String] {
        get async {
            var all: [String] = []
            for await line in lines { all.append(line) }
            return all
        }
    }
}

extension Example: CustomTestStringConvertible {
    public var testDescription: String { name }
}
