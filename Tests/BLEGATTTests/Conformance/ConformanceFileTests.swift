import Testing

@Suite("The file of GATT exchanges", .enabled(if: ConformanceFile.isExpected))
struct ConformanceFileTests {
    @Test("The file can be read, and each of its cases is one of a server or of a client")
    func everyCaseIsOneOfAServerOrOfAClient() throws {
        let file = try ConformanceFile.read()
        #expect(!ConformanceFile.serverCases.isEmpty)
        #expect(!ConformanceFile.clientCases.isEmpty)
        #expect(ConformanceFile.serverCases.count + ConformanceFile.clientCases.count == file.cases.count)
    }
}
