import BLEProfiles

/// Prints the results of measurements: each as a line of JSON at once, or all as a table at the end.
struct ThroughputPrinter {
    let asJSON: Bool
    /// Prints a line.
    var output: @Sendable (String) throws -> Void = { try Output.standard.line($0) }

    /// Measures operations one after the other, and prints the results. The table has the results so far if a later
    /// measurement fails.
    ///
    /// - Throws: the error of `measure`, after the table.
    func print(
        _ operations: [ThroughputOperation],
        measure: (ThroughputOperation) async throws -> ThroughputResult
    ) async throws {
        var table = TextTable(header: ThroughputResult.columns, rows: [])
        do {
            for operation in operations {
                let result = try await measure(operation)
                if asJSON { try output(result.json.description) } else { table.rows.append(result.row) }
            }
        } catch {
            try print(table)
            throw error
        }
        try print(table)
    }

    private func print(_ table: TextTable) throws {
        guard !table.rows.isEmpty else { return }
        for line in table.lines() { try output(line) }
    }
}
