import BLEProfiles

extension Profile {
    /// Reads the profile in a file.
    init(contentsOf path: String) throws {
        do {
            try self.init(decoding: JSON(parsing: File.read(path)))
            try checkHandles()
        } catch let error as JSONSyntaxError {
            throw FileError(path: path, problem: error.description)
        } catch let error as ProfileError {
            throw FileError(path: path, problem: error.description)
        }
    }
}
