import BLEProfiles

extension Profile {
    /// Reads the profile in a file; `-` is standard input.
    init(contentsOf path: String) async throws {
        let octets = try await File.read(path)
        do {
            try self.init(decoding: JSON(parsing: octets))
            try checkHandles()
        } catch let error as JSONSyntaxError {
            throw FileError(path: path, problem: error.description)
        } catch let error as ProfileError {
            throw FileError(path: path, problem: error.description)
        }
    }
}
